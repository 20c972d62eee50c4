import type { StoredConfig } from '../config/config.js';
import { sameJson } from './same-json.js';
import { encodePause, type Pause } from '../pause.js';
import { buildManagedKey, type ManagedTarget } from './managed.js';
import type { Manifest } from './manifest.js';

/** Some fields of one object in plain data: `{ limits: ['rpm:60/min'] }`, `{ name: 'Ann', parent: 'team' }`. */
export type Fields = Readonly<Record<string, unknown>>;

/** The fields of an entity's record that a file can own. */
export interface LiveRecord {
  readonly name: string | null;
  readonly parentId: string | null;
  readonly cascade: boolean;
  readonly bypass?: true;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly version: number;
  readonly pause?: Pause;
}

/** Every field that a file can own of such an object, with its default value. */
export function defaultsOf(target: ManagedTarget): Fields {
  if (target.kind === 'record') {
    return { name: null, parent: null, cascade: false, bypass: false, metadata: {}, paused: null };
  }
  return target.kind === 'system' ? { limits: null, onUnavailable: null } : { limits: null };
}

export function fieldsOfConfig({ limits, onUnavailable }: Omit<StoredConfig, 'v'>, target: ManagedTarget): Fields {
  const texts = limits?.map(String) ?? null;
  return target.kind === 'system' ? { limits: texts, onUnavailable } : { limits: texts };
}

export function fieldsOfRecord({ name, parentId, cascade, bypass, metadata, pause }: LiveRecord): Fields {
  const paused = pause === undefined ? null : encodePause(pause);
  return { name, parent: parentId, cascade, bypass: bypass === true, metadata, paused };
}

/** The fields that a manifest names, by the key of the object: system, resources, records, then the limits of entities. */
export function fieldsOfManifest({ system, resources, entities }: Manifest): ReadonlyMap<string, Fields> {
  const wanted = new Map<string, Fields>();
  const want = (target: ManagedTarget, fields: Fields): unknown => wanted.set(buildManagedKey(target), fields);
  if (system !== null) {
    const { limits, onUnavailable } = system;
    want({ kind: 'system' }, withoutUndefined({ limits: limits?.map(String), onUnavailable }));
  }
  for (const [resource, limits] of resources) want({ kind: 'resource', resource }, { limits: limits.map(String) });
  for (const [entityId, { record, limits, resources: own }] of entities) {
    if (record !== null) want({ kind: 'record', entityId }, withoutUndefined(record));
    if (limits !== null) want({ kind: 'entity_default', entityId }, { limits: limits.map(String) });
    for (const [resource, rules] of own) want({ kind: 'entity', entityId, resource }, { limits: rules.map(String) });
  }
  return wanted;
}

function withoutUndefined(fields: object): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Whether two values of a field are the same. The order of limits does not count, because not every store keeps it. */
export function sameField(name: string, a: unknown, b: unknown): boolean {
  if (name !== 'limits' || !Array.isArray(a) || !Array.isArray(b)) return sameJson(a, b);
  return sameJson((a as string[]).toSorted(), (b as string[]).toSorted());
}

export function sameFields(a: Fields, b: Fields): boolean {
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && sameField(name, a[name], b[name]))
  );
}
