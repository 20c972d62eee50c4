import type { OnUnavailable } from '../../core/config/config.js';
import { HeadgateError } from '../../core/errors.js';
import type { Limit } from '../../core/limit.js';
import type { ConfigLevelRef } from '../../limiter/api/config-api.js';
import { describeLevel } from './describe-limits.js';
import type { Session } from '../run/session.js';
import type { Style } from '../terminal/terminal.js';

/** The flag and its help, for every command that sets limits. */
export const REPLACE_OPTION = [
  '--replace',
  'replace the whole list: removes the limits that are not named, after confirmation',
] as const;

/** For a command that also sets something else than limits: `--replace` alone could be meant to remove them all. */
export function checkReplace(limits: readonly Limit[] | undefined, replace: boolean | undefined): void {
  if (replace !== true || limits !== undefined) return;
  throw new HeadgateError('input.invalid', '--replace needs the limits that stay: -l rpm:60/min');
}

/** The values of `-l` and `--replace`. */
export interface LimitsToSet {
  readonly limits: readonly Limit[];
  /** Whether limits that are not named are removed. */
  readonly replace: boolean;
  /** Only for the system: written together with its limits. */
  readonly onUnavailable?: OnUnavailable;
}

/** Text after the result of a `set`; may be empty. */
export type Note = (style: Style) => string;

/**
 * Sets limits at one level. Asks for confirmation before it removes limits. The note names the limits of a weaker level
 * that no longer apply, because only the strongest level that has limits applies.
 */
export async function setLimits(session: Session, level: ConfigLevelRef, wanted: LimitsToSet): Promise<Note> {
  const write = await prepareLimits(session, level, wanted);
  return write();
}

/**
 * Asks for confirmation as `setLimits` does, and returns the rest of it: a command that also writes something else must
 * ask before its first write.
 */
export async function prepareLimits(
  session: Session,
  level: ConfigLevelRef,
  wanted: LimitsToSet,
): Promise<() => Promise<Note>> {
  const { limits, replace } = wanted;
  const stored = (await session.limiter.config.get(level))?.limits ?? [];
  if (replace) {
    const removed = withoutNames(stored, limits);
    if (removed.length > 0) await session.confirm(`removes ${removed.join(', ')} from ${describeLevel(level)}`);
  }
  return async () => {
    await writeLimits(session, level, wanted);
    return stored.length > 0 ? () => '' : noteHidden(session, level, limits);
  };
}

async function writeLimits(
  { limiter: { config } }: Session,
  level: ConfigLevelRef,
  { replace, ...change }: LimitsToSet,
): Promise<void> {
  if (level === 'system') {
    await (replace ? config.setSystem(change) : config.mergeSystem(change));
  } else if (!('entityId' in level)) {
    await (replace ? config.setResource(level.resource, change) : config.mergeResource(level.resource, change));
  } else if (level.resource === undefined) {
    const { entityId } = level;
    await (replace ? config.setEntityDefault(entityId, change) : config.mergeEntityDefault(entityId, change));
  } else {
    const { entityId, resource } = level;
    await (replace ? config.setEntity(entityId, resource, change) : config.mergeEntity(entityId, resource, change));
  }
}

async function noteHidden(session: Session, level: ConfigLevelRef, limits: readonly Limit[]): Promise<Note> {
  for (const lower of levelsBelow(level)) {
    const found = (await session.limiter.config.get(lower))?.limits ?? [];
    if (found.length === 0) continue;
    const hidden = withoutNames(found, limits);
    if (hidden.length === 0) return () => '';
    const what = `${describeLevel(lower)} also has ${hidden.join(', ')}`;
    return (style) => `\n${style.yellow('note')}: ${what}, which no longer applies here. Add it with -l if it should.`;
  }
  return () => '';
}

function levelsBelow(level: ConfigLevelRef): readonly ConfigLevelRef[] {
  if (level === 'system') return [];
  if (!('entityId' in level) || level.resource === undefined) return ['system'];
  return [{ entityId: level.entityId }, { resource: level.resource }, 'system'];
}

function withoutNames(limits: readonly Limit[], others: readonly Limit[]): readonly Limit[] {
  const names = new Set(others.map(({ name }) => name));
  return limits.filter(({ name }) => !names.has(name));
}
