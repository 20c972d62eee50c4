import type { Rate } from '../../../../src/core/bucket/bucket.js';
import type { Limit } from '../../../../src/core/limit.js';
import { buildCreate } from '../../../support/dynamodb/write-inputs.js';
import type { WriteIds } from '../../../../src/backends/dynamodb/bucket/writes/record-write.js';
import { buildShardWrite } from '../../../support/dynamodb/write-inputs.js';
import { buildSettlement } from '../../../support/dynamodb/write-inputs.js';
import { decodeShard, type ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import type { ShardWrite } from '../../../../src/backends/dynamodb/bucket/shard-write.js';
import type { Item } from '../../../../src/backends/dynamodb/client/transport.js';
import { at, type BucketWrite, type ConditionalStore, type Image } from '../../../oracle/store.js';
import { limitOf, nameOf } from '../../../support/dynamodb/workloads/oracle-limits.js';
import type { ShardEngine } from '../../../support/dynamodb/shard/shard-engine.js';
import { imageOf } from '../../../support/dynamodb/shard/shard-images.js';

/** One item of the table as the oracle's store. Each write is a request of the real builders. */
export async function itemStore(engine: ShardEngine, ns: string, initial: Image): Promise<ConditionalStore> {
  const target = { tableName: engine.table.name, ns };
  let writes = 0;
  let limits = initial.limits.map(({ rate }, limit) => limitOf(limit, rate));
  const ids = (): WriteIds => ({ own: `write-${(writes += 1)}`, unanswered: [] });
  const decoded = (item: Item | undefined): ShardImage => decodeShard(item ?? {}, limits);
  const shown = (image: ShardImage): Image => ({
    baseMs: image.baseMs,
    limits: limits.map(({ name }) => {
      const { limit, tokensMilli } = image.limits.find((account) => account.limit.name === name)!;
      return { rate: rateOf(limit), tokensMilli };
    }),
  });

  const image = imageOf(limits, { baseMs: initial.baseMs });
  await engine.send('PutItem', buildCreate(target, image));
  let last = image;

  return {
    // No other client writes, and every answer shows the whole item.
    read: () => shown(last),
    async write(write) {
      // The write contains what the oracle's client cached; only the base of the image goes into the request.
      const seen = { ...last, baseMs: write.ifBaseMs ?? last.baseMs };
      const settles = write.setBaseMs !== null;
      if (settles) limits = limits.map((limit, place) => changed(write, place) ?? limit);
      const input = settles
        ? buildSettlement(target, seen, settlementOf(write, limits), seen.version, seen.ttlSec, ids())
        : buildShardWrite(target, seen, moveOf(write), ids());
      const answer = await engine.send('UpdateItem', input);
      if (!answer.ok && answer.failure.kind !== 'condition') throw new Error(answer.failure.kind);
      last = decoded(
        answer.ok ? answer.output.Attributes : answer.failure.kind === 'condition' ? answer.failure.item : undefined,
      );
      return { applied: answer.ok, image: shown(last) };
    },
  };
}

function rateOf({ kind, capacityMilli, refillMilli, refillPeriodMs }: Limit): Rate {
  return { kind, capacityMilli, refillMilli, refillPeriodMs };
}

function changed({ limits }: BucketWrite, place: number): Limit | undefined {
  const setRate = limits.find(({ limit }) => limit === place)?.setRate ?? null;
  return setRate === null ? undefined : limitOf(place, setRate);
}

function moveOf({ limits }: BucketWrite): ShardWrite {
  return {
    limits: limits.map(({ limit, write }) => ({ name: nameOf(limit), write, consumedMilli: 0 })),
    acquires: 1,
    expired: 0,
    holders: [],
    adopts: null,
    ttlSec: undefined,
  };
}

function settlementOf({ setBaseMs, limits: writes }: BucketWrite, limits: readonly Limit[]) {
  return {
    nextBaseMs: setBaseMs!,
    limits: writes.map(({ limit, write }) => ({ kind: 'stays' as const, limit: at(limits, limit), write })),
    removed: [],
    countsHolders: false,
  };
}
