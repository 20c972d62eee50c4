import type { Level, LevelView, PausedBy } from '../api/types.js';

export type LevelKind = 'entity and resource' | 'entity default' | 'resource' | 'system';

export function kindOf({ entityId, resource }: Level): LevelKind {
  if (entityId !== undefined) return resource === undefined ? 'entity default' : 'entity and resource';
  return resource === undefined ? 'system' : 'resource';
}

interface Named {
  readonly entityId?: string | null;
  readonly resource?: string | null;
}

/** Whom a level concerns, in words: an entity and a resource may have the same name. */
export function nameOfLevel({ entityId = null, resource = null }: Named): string {
  if (entityId !== null) return resource === null ? entityId : `${entityId} on ${resource}`;
  return resource === null ? 'the system' : `every entity on ${resource}`;
}

/** What a pause stops, in words. */
export function nameOfPaused({ entityId, resource }: Pick<PausedBy, 'entityId' | 'resource'>): string {
  return `${entityId} on ${resource ?? 'every resource'}`;
}

/** The four levels of an entity on a resource: the first one that has limits applies. */
export function levelsOf(entityId: string, resource: string): readonly Level[] {
  return [
    ...(entityId === '' || resource === '' ? [] : [{ entityId, resource }]),
    ...(entityId === '' ? [] : [{ entityId }]),
    ...(resource === '' ? [] : [{ resource }]),
    {},
  ];
}

/** The levels that have limits. `hasMore`: these are not all. */
export interface KnownLevels {
  readonly items: readonly LevelView[];
  readonly hasMore: boolean;
}

/** Whom a change of a level concerns, as sentences. */
export interface Affected {
  readonly sentence: string;
  /** The levels that come before it, so that the change does not reach them. */
  readonly exceptions: readonly string[];
}

/** `all`: every level that has limits. */
export function affectedBy(level: Level, all: readonly LevelView[]): Affected {
  const filled = all.filter(({ limits }) => limits.length > 0).map((one) => one.level);
  const { entityId, resource } = level;
  switch (kindOf(level)) {
    case 'entity and resource':
      return { sentence: `${entityId} on ${resource} only.`, exceptions: [] };
    case 'entity default':
      return {
        sentence: `${entityId} on every resource for which it has no limits of its own.`,
        exceptions: namesOf(filled.filter((one) => one.entityId === entityId && one.resource !== undefined)),
      };
    case 'resource':
      return {
        sentence: `Every entity on ${resource} that has no limits of its own.`,
        exceptions: namesOf(
          filled.filter(
            (one) => one.entityId !== undefined && (one.resource === undefined || one.resource === resource),
          ),
        ),
      };
    case 'system':
      return {
        sentence: 'Every entity on every resource for which no other level has limits.',
        exceptions: namesOf(filled.filter((one) => kindOf(one) !== 'system')),
      };
  }
}

function namesOf(levels: readonly Level[]): string[] {
  return levels.map(nameOfLevel).toSorted();
}

/** What a change makes of the limits of a level, by name. */
export interface LimitChange {
  readonly name: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** Compares limits in their text form. An unchanged limit is listed with equal texts. */
export function changesOf(before: readonly string[], after: readonly string[]): LimitChange[] {
  const [was, is] = [byName(before), byName(after)];
  return [...new Set([...was.keys(), ...is.keys()])].map((name) => ({
    name,
    before: was.get(name) ?? null,
    after: is.get(name) ?? null,
  }));
}

function byName(texts: readonly string[]): Map<string, string> {
  return new Map(texts.map((text) => [text.split(':')[0] ?? text, text]));
}

const LIMIT = /^[^:]+:(?:unlimited|\d+\/(?:concurrent|\d*(?:m?s|sec|min|hour|day)))\b/;

/**
 * The limits that were typed, one for each line or word, and the words that are none. The server checks the rest of
 * each limit.
 */
export function parseLimitLines(text: string): {
  readonly limits: readonly string[];
  readonly wrong: readonly string[];
} {
  const words = text.split(/[\s,]+/).filter((word) => word !== '');
  return { limits: words, wrong: words.filter((word) => !LIMIT.test(word)) };
}
