import type { StoredConfig } from '../config/config.js';
import { sameJson } from './same-json.js';
import { decodePause, encodePause, isRunning, type Pause, type PauseData } from '../pause.js';
import type { EpochMs } from '../units.js';
import { plainObject } from './manifest-fields.js';
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

/** A pause that has ended is as none. */
export function fieldsOfRecord(
  { name, parentId, cascade, bypass, metadata, pause }: LiveRecord,
  nowMs: EpochMs,
): Fields {
  const paused = isRunning(pause, nowMs) ? encodePause(pause) : null;
  return { name, parent: parentId, cascade, bypass: bypass === true, metadata, paused };
}

interface Sides {
  readonly wanted: Fields | undefined;
  readonly owned: Fields | undefined;
}

/**
 * The two sides of a file without pauses that have ended. A file that names one owns no pause: of what it owned before, it
 * ends only a pause that is still as it was applied.
 */
export function withoutEndedPauses(
  { wanted, owned, live }: Sides & { readonly live: Fields | undefined },
  nowMs: EpochMs,
): Sides {
  const hasEnded = (fields: Fields | undefined): boolean => {
    const paused = fields?.['paused'];
    return plainObject(paused) && !isRunning(decodePause(paused as unknown as PauseData), nowMs);
  };
  const left = (fields: Fields | undefined): Fields | undefined =>
    fields && Object.fromEntries(Object.entries(fields).filter(([name]) => name !== 'paused'));
  const isAsApplied = sameJson(owned?.['paused'], live?.['paused']);
  return {
    wanted: hasEnded(wanted) ? left(wanted) : wanted,
    owned: hasEnded(owned) || (hasEnded(wanted) && !isAsApplied) ? left(owned) : owned,
  };
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
