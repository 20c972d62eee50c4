import type { ConfigLevel } from '../../../core/config/config.js';
import { USAGE_WINDOWS } from '../../../core/usage/usage.js';
import type { RecordKey } from '../table/keys.js';

/** The key of a record in a published layout. `ns` is null in tables without namespaces. */
export type LegacyKey = { readonly ns: string | null } & (
  | { readonly kind: 'limit-bucket'; readonly entityId: string; readonly resource: string; readonly limit: string }
  | { readonly kind: 'bucket'; readonly entityId: string; readonly resource: string }
  | { readonly kind: 'shard'; readonly entityId: string; readonly resource: string; readonly shard: number }
  | { readonly kind: 'limit'; readonly level: ConfigLevel; readonly limit: string }
  | { readonly kind: 'config'; readonly level: ConfigLevel }
  | { readonly kind: 'entity'; readonly entityId: string }
  | { readonly kind: 'usage'; readonly entityId: string; readonly resource: string; readonly window: string }
  | { readonly kind: 'audit'; readonly subject: string; readonly id: string }
  | { readonly kind: 'namespace'; readonly under: 'id' | 'name'; readonly value: string }
  | { readonly kind: 'version' }
  /** A record of a known kind whose key does not show where one name ends and the next starts. */
  | { readonly kind: 'unreadable' }
);

const UNREADABLE = { kind: 'unreadable' } as const;
/** The kinds of records in an entity's partition, and in the partition of a shared level. */
const ENTITY_KINDS = new Set(['META', 'BUCKET', 'USAGE', 'LIMIT', 'CONFIG']);
const LEVEL_KINDS = new Set(['LIMIT', 'CONFIG']);
const DEFAULT_RESOURCE = '_default_';
const REGISTRY = '_';

/** null: no published layout has this key. Namespace ids contain no `/`; early releases allowed `#` in names. */
export function parseLegacyKey({ PK, SK }: RecordKey): LegacyKey | null {
  const cut = PK.indexOf('/');
  const named = cut >= 0 && cut < PK.indexOf('#');
  const ns = named ? PK.slice(0, cut) : null;
  const [owner = '', ...names] = (named ? PK.slice(cut + 1) : PK).split('#');
  const [empty, kind = '', ...rest] = SK.split('#');
  if (empty !== '' || (ns === null && owner === 'BUCKET')) return null;
  const parsed = parseRecord(ns, owner, names, kind, rest);
  return parsed === null ? null : { ns, ...parsed };
}

/** A record without its namespace. */
type Parsed = LegacyKey extends infer Key ? (Key extends LegacyKey ? Omit<Key, 'ns'> : never) : never;

function parseRecord(
  ns: string | null,
  owner: string,
  names: readonly string[],
  kind: string,
  rest: readonly string[],
): Parsed | null {
  const [name = '', second, third] = names;
  switch (owner) {
    case 'ENTITY':
      if (names.length > 1) return ENTITY_KINDS.has(kind) ? UNREADABLE : null;
      return names.length === 1 ? parseOfEntity(name, kind, rest) : null;
    case 'BUCKET':
      if (kind !== 'STATE' || rest.length > 0) return null;
      if (names.length > 3) return UNREADABLE;
      if (names.length !== 3 || !/^\d{1,6}$/.test(third ?? '')) return null;
      return { kind: 'shard', entityId: name, resource: second ?? '', shard: Number(third) };
    case 'RESOURCE':
      if (names.length > 1) return LEVEL_KINDS.has(kind) ? UNREADABLE : null;
      return names.length === 1 ? parseOfLevel({ kind: 'resource', resource: name }, kind, rest) : null;
    case 'SYSTEM':
      return parseOfSystem(ns, kind, rest);
    case 'AUDIT':
      if (kind !== 'AUDIT' || rest.length !== 1) return null;
      return names.length === 1 ? { kind: 'audit', subject: name, id: rest[0] ?? '' } : UNREADABLE;
    default:
      return null;
  }
}

function parseOfEntity(entityId: string, kind: string, rest: readonly string[]): Parsed | null {
  const [resource = '', second] = rest;
  if (kind === 'META' && rest.length === 0) return { kind: 'entity', entityId };
  if (kind === 'BUCKET' && rest.length === 2) return { kind: 'limit-bucket', entityId, resource, limit: second ?? '' };
  if (kind === 'BUCKET' && rest.length === 1) return { kind: 'bucket', entityId, resource };
  if (kind === 'USAGE' && rest.length === 2) return { kind: 'usage', entityId, resource, window: second ?? '' };
  const level: ConfigLevel =
    resource === DEFAULT_RESOURCE ? { kind: 'entity_default', entityId } : { kind: 'entity', entityId, resource };
  if (kind === 'LIMIT' && rest.length === 2) return { kind: 'limit', level, limit: second ?? '' };
  if (kind === 'CONFIG' && rest.length === 1) return { kind: 'config', level };
  return ENTITY_KINDS.has(kind) && !isUsageOfThisLayout(kind, rest) ? UNREADABLE : null;
}

function isUsageOfThisLayout(kind: string, [, window = '', ...more]: readonly string[]): boolean {
  return kind === 'USAGE' && more.length === 1 && (USAGE_WINDOWS as readonly string[]).includes(window);
}

/** The limits of a resource are stored under their name, or under the resource and their name. */
function parseOfLevel(level: ConfigLevel, kind: string, rest: readonly string[]): Parsed | null {
  if (kind === 'CONFIG' && rest.length === 0) return { kind: 'config', level };
  if (kind !== 'LIMIT' || rest.length === 0) return null;
  if (rest.length > 2) return UNREADABLE;
  const [first = '', second] = rest;
  const own = level.kind === 'resource' ? level.resource : DEFAULT_RESOURCE;
  if (second === undefined) return { kind: 'limit', level, limit: first };
  return first === own || first === DEFAULT_RESOURCE ? { kind: 'limit', level, limit: second } : null;
}

function parseOfSystem(ns: string | null, kind: string, rest: readonly string[]): Parsed | null {
  if (kind === 'VERSION' && rest.length === 0) return { kind: 'version' };
  if (ns === REGISTRY) {
    const [value = ''] = rest;
    if (kind === 'NAMESPACE' && rest.length === 1) return { kind: 'namespace', under: 'name', value };
    return kind === 'NSID' && rest.length === 1 ? { kind: 'namespace', under: 'id', value } : null;
  }
  return parseOfLevel({ kind: 'system' }, kind, rest);
}
