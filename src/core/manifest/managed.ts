import type { ConfigLevel } from '../config/config.js';

/** What a declarative file can own: the limits of one level, or the record of an entity. */
export type ManagedTarget = ConfigLevel | { readonly kind: 'record'; readonly entityId: string };

/** The key of a level. Unambiguous, because no name contains "#". */
export function buildLevelKey(level: ConfigLevel): string {
  switch (level.kind) {
    case 'entity':
      return `entity#${level.entityId}#${level.resource}`;
    case 'entity_default':
      return `entity_default#${level.entityId}`;
    case 'resource':
      return `resource#${level.resource}`;
    case 'system':
      return 'system';
  }
}

/** The level with that key; undefined if no level can have it. */
export function parseLevelKey(key: string): ConfigLevel | undefined {
  const [kind, first = '', second = '', ...rest] = key.split('#');
  const given = rest.length > 0 ? -1 : second !== '' ? 2 : first !== '' ? 1 : 0;
  if (kind === 'entity' && given === 2) return { kind, entityId: first, resource: second };
  if (kind === 'entity_default' && given === 1) return { kind, entityId: first };
  if (kind === 'resource' && given === 1) return { kind, resource: first };
  return key === 'system' ? { kind: 'system' } : undefined;
}

const RECORD = 'record#';

/** The key of the mark that records what a file owns of an object. */
export function buildManagedKey(target: ManagedTarget): string {
  return target.kind === 'record' ? RECORD + target.entityId : buildLevelKey(target);
}

/** undefined: the key is unknown; a newer version of Headgate may have written it. */
export function parseManagedKey(key: string): ManagedTarget | undefined {
  if (!key.startsWith(RECORD)) return parseLevelKey(key);
  const entityId = key.slice(RECORD.length);
  return entityId === '' || entityId.includes('#') ? undefined : { kind: 'record', entityId };
}

/** The name of the object in messages. */
export function describeTarget(target: ManagedTarget): string {
  switch (target.kind) {
    case 'system':
      return 'system limits';
    case 'resource':
      return `limits of resource ${target.resource}`;
    case 'record':
      return `entity ${target.entityId}`;
    case 'entity_default':
      return `default limits of ${target.entityId}`;
    case 'entity':
      return `limits of ${target.entityId} on ${target.resource}`;
  }
}
