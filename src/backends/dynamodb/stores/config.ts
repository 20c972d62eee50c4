import { printOptions } from '../../../core/limit-options.js';
import type { AdminCall, Call, ConfigChange, ConfigRead, ConfigStore, LevelRecord } from '../../../backend.js';
import { planConfigChange } from '../../../core/config/config-change.js';
import type { ConfigLevel, ConfigLevels, StoredConfig } from '../../../core/config/config.js';
import { readKey } from '../table/attributes.js';
import { type Deadline, deadlineIn } from '../../../machine-time.js';
import { ownOrNothing, requireOwn } from '../table/foreign-record.js';
import { buildConfigKey, buildEntityKey, buildSequenceKey, index, parseConfigKey, SUFFIXES } from '../table/keys.js';
import { ATTRIBUTE, decodePauseAttributes, encodePauseAttributes } from '../table/items.js';
import {
  decodeConfig,
  decodeConfigWrites,
  decodeParent,
  decodeSequence,
  encodeConfig,
  encodeSequence,
} from '../table/records.js';
import { readItems } from '../client/batches.js';
import { readItem, type Table } from '../client/requests.js';
import { SharedReads } from '../client/shared-reads.js';
import type { Item } from '../client/transport.js';
import { ABSENT, putAction, type Seen } from './actions.js';
import { type PlannedChange, writeChange } from './change.js';
import { KeyedMutex } from './keyed-mutex.js';
import type { NamespaceGate } from '../schema/namespace-gate.js';
import type { VersionGate } from '../schema/version-gate.js';
import type { RecentWrites } from './recent-writes.js';
import { behind, pageOfRecords, readRows } from './rows.js';

/** Stored limits by level. */
export function createConfigStore(
  table: Table,
  gate: NamespaceGate,
  versions: Pick<VersionGate, 'require'>,
  ownWrites: RecentWrites,
): ConfigStore {
  const writes = new KeyedMutex();
  const reads = new SharedReads(table);

  return {
    async readFor(call, entityId, resource, known, isExact = false) {
      await gate.check(call);
      const consistent = isExact || ownWrites.isRecent(call.namespaceId, call.nowMs);
      return readFor(table, reads, call, entityId, resource, known, consistent);
    },

    async read(call, level) {
      await gate.check(call);
      const key = buildConfigKey(call.namespaceId, level);
      return decoded(requireOwn(table, await readItem(table, key, deadlineIn(call.timeoutMs))));
    },

    async readMany(call, levels) {
      await gate.check(call);
      const keys = levels.map((level) => buildConfigKey(call.namespaceId, level));
      const items = await readItems(table, keys, deadlineIn(call.timeoutMs));
      return items.map((item) => decoded(requireOwn(table, item)));
    },

    async write(call, level, change) {
      await gate.check(call);
      // A client of version 1 would enforce a shadow, and serve every class without a reserve.
      if (change.limits?.some((limit) => printOptions(limit) !== '') === true) {
        await versions.require(call, 'a limit with options');
      }
      const { namespaceId: ns, nowMs } = call;
      const deadline = deadlineIn(call.timeoutMs);
      try {
        return await writes.run(ns, deadline, async () =>
          writeChange(table, ns, call, deadline, async () => planWrite(table, call, level, change, deadline)),
        );
      } finally {
        // A change that failed may still have been written.
        ownWrites.note(ns, nowMs);
      }
    },

    async list(call, resource, page) {
      await gate.check(call);
      const deadline = deadlineIn(call.timeoutMs);
      const partitions = [index.entityConfigs(call.namespaceId, resource)];
      const rows = readRows(
        table,
        { index: 'GSI3', partitions, ...behind('', page.after) },
        page.limit + 1,
        () => deadline,
      );
      return pageOfRecords(rows, page.limit, (found) => found.map((row) => row['GSI3SK']?.S), String);
    },

    async all(call, page) {
      await gate.check(call);
      const { namespaceId: ns, timeoutMs } = call;
      const deadline = deadlineIn(timeoutMs);
      const partitions = SUFFIXES.map((suffix) => index.all(ns, suffix));
      const range = { index: 'GSI4', partitions, ...behind(index.configs(ns), page.after) } as const;
      const load = async (found: readonly Item[]) =>
        (await readItems(table, found.map(readKey), deadline)).map((item) => recordOf(ownOrNothing(item)));
      const rows = readRows(table, range, page.limit + 1, () => deadline);
      const cursorOf = ({ level }: LevelRecord) =>
        index.config(ns, buildConfigKey(ns, level)).slice(index.configs(ns).length);
      return pageOfRecords(rows, page.limit, load, cursorOf);
    },
  };
}

/** Reads the entity's levels and its record. The shared levels are read only if the caller does not know them. */
async function readFor(
  table: Table,
  reads: SharedReads,
  call: Call,
  entityId: string,
  resource: string,
  known: Pick<ConfigLevels, 'resource' | 'system'> | undefined,
  consistent: boolean,
): Promise<ConfigRead> {
  const { namespaceId: ns, timeoutMs } = call;
  const keys = [
    buildConfigKey(ns, { kind: 'entity', entityId, resource }),
    buildConfigKey(ns, { kind: 'entity_default', entityId }),
    buildEntityKey(ns, entityId),
  ];
  const shared = [buildConfigKey(ns, { kind: 'resource', resource }), buildConfigKey(ns, { kind: 'system' })];
  const wanted = known === undefined ? [...keys, ...shared] : keys;
  const items = await reads.read(wanted, deadlineIn(timeoutMs), consistent);
  const [own, ownDefault, meta, ofResource, ofSystem] = items.map((item) => requireOwn(table, item));
  const bucketPause = own === undefined ? undefined : decodePauseAttributes(own);
  return {
    levels: {
      entity: decoded(own),
      entityDefault: decoded(ownDefault),
      resource: known === undefined ? decoded(ofResource) : known.resource,
      system: known === undefined ? decoded(ofSystem) : known.system,
    },
    entity: meta === undefined ? undefined : decodeParent(meta),
    ...(bucketPause === undefined ? {} : { bucketPause }),
  };
}

function decoded(item: Item | undefined): StoredConfig | undefined {
  return item === undefined ? undefined : decodeConfig(item);
}

/** undefined: the level has no settings. */
function recordOf(item: Item | undefined): LevelRecord | undefined {
  const level = item === undefined ? null : parseConfigKey(readKey(item));
  const config = decoded(item);
  if (level === null || config === undefined) return undefined;
  return config.limits === null && config.onUnavailable === null ? undefined : { level, config };
}

/** Every write takes the next number of the namespace's sequence, so the writes of one namespace are serialized. */
async function planWrite(
  table: Table,
  call: AdminCall,
  level: ConfigLevel,
  change: ConfigChange,
  deadline: Deadline,
): Promise<PlannedChange<StoredConfig>> {
  const { namespaceId: ns } = call;
  const [item, sequence] = await readItems(table, [buildConfigKey(ns, level), buildSequenceKey(ns)], deadline);
  const stored = decoded(requireOwn(table, item));
  const { config, changesNothing, ...record } = planConfigChange(level, stored, change);
  if (changesNothing) return { result: stored ?? { ...config, v: 0 }, write: null };
  const next = (sequence === undefined ? 0 : decodeSequence(sequence)) + 1;
  const result = { ...config, v: next };
  const actions = [
    putAction(table, encodeChanged(ns, level, result, item), asSeen(item)),
    putAction(table, encodeSequence(ns, next), sequence === undefined ? ABSENT : { v: sequence['v'] }),
  ];
  return { result, write: { ...record, actions } };
}

/** The pause of the bucket is in the same record, and stays. */
function encodeChanged(ns: string, level: ConfigLevel, config: StoredConfig, item: Item | undefined): Item {
  const written = encodeConfig(ns, level, config, decodeConfigWrites(item) + 1);
  return item === undefined ? written : { ...written, ...encodePauseAttributes(decodePauseAttributes(item)) };
}

/** The two records were not read at the same instant, so each needs its own condition. */
export function asSeen(item: Item | undefined): Seen {
  if (item === undefined) return ABSENT;
  return { v: item['v'], [ATTRIBUTE.pauseEnd]: item[ATTRIBUTE.pauseEnd] };
}
