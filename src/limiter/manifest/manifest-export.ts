import type { EntityRecord, LevelRecord } from '../../backend.js';
import type { Limit } from '../../core/limit.js';
import {
  type EntityWish,
  type ManifestData,
  type RecordWish,
  type SystemWish,
  writeManifest,
} from '../../core/manifest/manifest.js';
import { encodePause, isRunning } from '../../core/pause.js';
import type { EpochMs } from '../../core/units.js';
import type { Context } from '../context.js';
import { readPages } from './manifest-plan.js';

/** The manifest of the whole namespace. */
export async function exportManifest(context: Context): Promise<ManifestData> {
  const { config, entities } = context.backend;
  const levels = await readPages(context, 'listing configs', (call, page) => config.all(call, page));
  const records = await readPages(context, 'listing entities', (call, page) => entities.list(call, page));
  const resources = new Map<string, readonly Limit[]>();
  for (const { level, config: stored } of levels) {
    if (level.kind === 'resource') resources.set(level.resource, stored.limits ?? []);
  }
  return writeManifest({
    namespace: context.namespace,
    system: systemOf(levels),
    resources: sorted(resources),
    entities: sorted(entitiesOf(levels, records, context.clock.now())),
  });
}

function systemOf(levels: readonly LevelRecord[]): SystemWish | null {
  const system = levels.find(({ level }) => level.kind === 'system')?.config;
  if (system === undefined) return null;
  const { limits, onUnavailable } = system;
  return { ...(limits === null ? {} : { limits }), ...(onUnavailable === null ? {} : { onUnavailable }) };
}

function entitiesOf(
  levels: readonly LevelRecord[],
  records: readonly EntityRecord[],
  nowMs: EpochMs,
): ReadonlyMap<string, EntityWish> {
  const wishes = new Map(records.map((record) => [record.id, wishOf(record, nowMs)]));
  const defaults = new Map<string, readonly Limit[]>();
  const own = new Map<string, Map<string, readonly Limit[]>>();
  for (const { level, config } of levels) {
    const limits = config.limits ?? [];
    if (level.kind === 'entity_default') defaults.set(level.entityId, limits);
    if (level.kind !== 'entity') continue;
    const resources = own.get(level.entityId) ?? new Map<string, readonly Limit[]>();
    own.set(level.entityId, resources.set(level.resource, limits));
  }
  const ids = new Set([...wishes.keys(), ...defaults.keys(), ...own.keys()]);
  return new Map(
    [...ids].map((id) => {
      const resources = sorted(own.get(id) ?? new Map<string, readonly Limit[]>());
      const limits = defaults.get(id) ?? null;
      const record = wishes.get(id) ?? null;
      // An entry with limits asks for a record only if it names a field of the record.
      const isSilent = record !== null && Object.keys(record).length === 0 && (limits !== null || resources.size > 0);
      return [id, { record: isSilent ? { cascade: false } : record, limits, resources }];
    }),
  );
}

/** Leaves out fields that have their default value, and a pause that has ended. */
function wishOf({ name, parentId, cascade, bypass, metadata, pause }: EntityRecord, nowMs: EpochMs): RecordWish {
  return {
    ...(name === null ? {} : { name }),
    ...(parentId === null ? {} : { parent: parentId }),
    ...(cascade ? { cascade } : {}),
    ...(bypass === undefined ? {} : { bypass }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(isRunning(pause, nowMs) ? { paused: encodePause(pause) } : {}),
  };
}

function sorted<T>(map: ReadonlyMap<string, T>): ReadonlyMap<string, T> {
  return new Map([...map].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
