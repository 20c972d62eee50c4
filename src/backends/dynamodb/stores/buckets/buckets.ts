import type { BucketRecord, BucketStore, Call, Page, PageRequest } from '../../../../backend.js';
import { credit, effectiveTokens } from '../../../../core/bucket/bucket.js';
import { heldSlots } from '../../../../core/bucket/held-slots.js';
import { countOpen } from '../../../../core/bucket/portable.js';
import { add, type Int } from '../../../../core/int.js';
import { isConsumed } from '../../../../core/limit-kind.js';
import type { EpochMs } from '../../../../core/units.js';
import { laterPause } from '../../../../core/pause.js';
import { readItems } from '../../client/batches.js';
import { readKey } from '../../table/attributes.js';
import { requireOwn } from '../../table/foreign-record.js';
import { type Deadline, deadlineIn } from '../../../../machine-time.js';
import { type Account, decodePauseAttributes, type ShardImage } from '../../table/items.js';
import { buildConfigKey, index, parseShardKey, type ShardKey, SUFFIXES } from '../../table/keys.js';
import { latestPause } from '../../bucket/shard-pauses.js';
import { asReclaimed } from '../../bucket/across-shards.js';
import { readBuckets } from '../../table/read-buckets.js';
import type { Table } from '../../client/requests.js';
import type { Item } from '../../client/transport.js';
import type { NamespaceGate } from '../../schema/namespace-gate.js';
import { pageOfRecords, readRows, type RowRange } from '../rows.js';

/** Buckets for administrators: the sum of all shards. */
export function createBucketStore(
  table: Table,
  gate: NamespaceGate,
  changes: Pick<BucketStore, 'reset' | 'pause'>,
): BucketStore {
  const list = async (call: Call, range: RowRange, page: PageRequest, cursorOf: (key: BucketRecord) => string) => {
    await gate.check(call);
    const deadline = deadlineIn(call.timeoutMs);
    return listBuckets(table, call, range, page, cursorOf, deadline);
  };

  return {
    async read(call, entityId, resource) {
      await gate.check(call);
      const deadline = deadlineIn(call.timeoutMs);
      const { namespaceId: ns, nowMs } = call;
      // A pause that stopped halfway, or that a migration made, is only in the config record.
      const recordKey = buildConfigKey(ns, { kind: 'entity', entityId, resource });
      const [[shards], [record]] = await Promise.all([
        readBuckets(table, ns, [{ entityId, resource }], deadline),
        readItems(table, [recordKey], deadline),
      ]);
      const found = describeBucket({ entityId, resource }, shards ?? [], nowMs);
      const pause = decodePauseAttributes(requireOwn(table, record) ?? {});
      if (found === undefined || pause === undefined) return found;
      return { ...found, pause: laterPause(found.pause, pause) };
    },
    listOfEntity(call, entityId, page) {
      const range: RowRange = {
        index: 'GSI3',
        partitions: [index.bucketsOfEntity(call.namespaceId, entityId)],
        ...afterBucket('BUCKET#', page.after),
      };
      return list(call, range, page, ({ resource }) => resource);
    },
    listOfResource(call, resource, page) {
      const range: RowRange = {
        index: 'GSI2',
        partitions: SUFFIXES.map((suffix) => index.resource(call.namespaceId, resource, suffix)),
        ...afterBucket('BUCKET#', page.after),
      };
      return list(call, range, page, (bucket) => `${bucket.entityId}#${bucket.resource}`);
    },
    ...changes,
  };
}

/** Continues after every shard of the last bucket of the previous page. */
function afterBucket(prefix: string, after: string | null): Pick<RowRange, 'from' | 'to'> {
  return { from: after === null ? prefix : `${prefix}${after}#\u007f`, to: `${prefix}\u007f` };
}

async function listBuckets(
  table: Table,
  call: Call,
  range: RowRange,
  page: PageRequest,
  cursorOf: (bucket: BucketRecord) => string,
  deadline: Deadline,
): Promise<Page<BucketRecord>> {
  const rows = readRows(table, range, page.limit + 1, () => deadline);
  const load = async (found: readonly Item[]): Promise<readonly (BucketRecord | undefined)[]> => {
    // Shard 0 represents its bucket; the other shards are read with it.
    const keys = found.map((row) => parseShardKey(readKey(row).PK)).filter((key) => key?.shard === 0) as ShardKey[];
    const buckets = await readBuckets(table, call.namespaceId, keys, deadline, 'own-only');
    return keys.map((key, at) => describeBucket(key, buckets[at] ?? [], call.nowMs));
  };
  return pageOfRecords(rows, page.limit, load, cursorOf);
}

/** undefined: the bucket does not exist, although the eventually consistent index may still list it. */
function describeBucket(
  { entityId, resource }: Pick<ShardKey, 'entityId' | 'resource'>,
  shards: readonly ShardImage[],
  nowMs: EpochMs,
): BucketRecord | undefined {
  const current = shards.map((image) => asReclaimed(image, nowMs));
  const [first] = current;
  if (first === undefined) return undefined;
  const sum = (count: (image: ShardImage) => number): number =>
    current.reduce((total, image) => total + count(image), 0);
  return {
    entityId,
    resource,
    limits: first.limits.map(({ limit }) => ({ limit, ...sumLimit(current, limit.name, nowMs) })),
    holders: sum(({ holders }) => countOpen(holders)),
    acquires: sum(({ acquires }) => acquires),
    expired: sum(({ expired }) => expired),
    ...pauseOf(current),
  };
}

/** While a pause is being written, some shards have it and others do not yet. */
function pauseOf(shards: readonly ShardImage[]): Pick<BucketRecord, 'pause'> {
  const pause = latestPause(shards);
  return pause === null ? {} : { pause };
}

function sumLimit(
  shards: readonly ShardImage[],
  name: string,
  nowMs: EpochMs,
): { readonly availableMilli: Int; readonly consumedMilli: Int } {
  let availableMilli: Int = 0;
  let consumedMilli: Int = 0;
  for (const image of shards) {
    const account = image.limits.find(({ limit }) => limit.name === name);
    if (account === undefined) continue;
    const { rate, tokensMilli } = account;
    availableMilli = add(availableMilli, effectiveTokens(rate, tokensMilli, credit(rate, image.baseMs, nowMs)));
    consumedMilli = add(consumedMilli, consumedOf(account, image));
  }
  return { availableMilli, consumedMilli };
}

/** For slots: the slots that are held. */
function consumedOf({ limit, consumedMilli }: Account, { holders }: ShardImage): Int {
  return isConsumed(limit.kind) ? consumedMilli : heldSlots(holders, limit.name);
}
