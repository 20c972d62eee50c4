import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deadlineIn } from '../../../../src/machine-time.js';
import { readItem } from '../../../../src/backends/dynamodb/client/requests.js';
import type { Item } from '../../../../src/backends/dynamodb/client/transport.js';
import {
  buildConfigKey,
  buildEntityKey,
  buildReceiptKey,
  buildShardKey,
  type RecordKey,
} from '../../../../src/backends/dynamodb/table/keys.js';
import { tableDefinition } from '../../../../src/backends/dynamodb/table/table-definition.js';
import { Limit } from '../../../../src/core/limit.js';
import type { RateLimiter } from '../../../../src/limiter/rate-limiter.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const PAGE = new URL('../../../../docs/backends/dynamodb.md', import.meta.url);
const USER = { entityId: 'user-1', resource: 'gpt-4' };
const SLOTS = Limit.concurrent('slots', 9);
const RPM = Limit.perMinute('rpm', 600);
const PAD = 'pad';
/** A table without indexes and without a stream, whose units are those of the record alone. */
const SCRATCH = 'headgate-sizes';
const KEY_NAMES = new Set<string | undefined>(['PK', 'SK']);
/** The end has as many digits as any time in milliseconds has. Of the reason, every byte counts once. */
const PAUSE = { untilMs: 1_987_654_321_987, reason: 'r' };

type Records = 'bucket' | 'entity' | 'config' | 'receipt';
const KEYS: Record<Records, (space: Space) => RecordKey> = {
  bucket: ({ ns }) => buildShardKey(ns, { ...USER, shard: 0 }),
  entity: ({ ns }) => buildEntityKey(ns, USER.entityId),
  config: ({ ns }) => buildConfigKey(ns, { kind: 'entity', ...USER }),
  receipt: ({ ns }) => buildReceiptKey(ns, { ...USER, id: 'id-1' }),
};

/** A feature: what is stored without it and with it, and the record that it is stored in. */
interface Feature {
  readonly row: string;
  readonly record: Records;
  readonly limits?: readonly Limit[];
  readonly without: (limiter: RateLimiter) => Promise<unknown>;
  readonly with: (limiter: RateLimiter) => Promise<unknown>;
  /** Bytes that the caller chose. */
  readonly own?: number;
}

const acquire =
  (more: object = {}) =>
  async (limiter: RateLimiter): Promise<void> => {
    await limiter.acquire({ ...USER, consume: { rpm: 1, slots: 1 }, ...more });
  };
const setLimits =
  (...limits: readonly Limit[]) =>
  async (limiter: RateLimiter) =>
    limiter.config.setEntity(USER.entityId, USER.resource, { limits });
const create = async (limiter: RateLimiter) => limiter.entities.create({ id: USER.entityId });
const nothing = async (): Promise<void> => {};

const FEATURES: readonly Feature[] = [
  {
    row: 'pause, in each shard of the bucket, without its reason and less the `ttl`, which goes',
    record: 'bucket',
    without: acquire(),
    with: async (limiter) => {
      await acquire()(limiter);
      await limiter.pause({ ...USER, ...PAUSE });
    },
    own: PAUSE.reason.length,
  },
  {
    row: 'pause of a bucket, in its config record, without its reason',
    record: 'config',
    without: setLimits(RPM),
    with: async (limiter) => {
      await setLimits(RPM)(limiter);
      await limiter.pause({ ...USER, ...PAUSE });
    },
    own: PAUSE.reason.length,
  },
  {
    row: 'pause of an entity, in its record, without its reason',
    record: 'entity',
    without: create,
    with: async (limiter) => {
      await create(limiter);
      await limiter.pause({ entityId: USER.entityId, ...PAUSE });
    },
    own: PAUSE.reason.length,
  },
  {
    row: 'reserve `batch=0.3` of the limit `rpm`, in the config record',
    record: 'config',
    without: setLimits(RPM),
    with: setLimits(Limit.perMinute('rpm', 600, { reserve: { batch: 0.3 } })),
  },
  {
    row: 'reserve or priority, in the bucket',
    record: 'bucket',
    without: acquire(),
    with: acquire({ priority: 'batch' }),
    limits: [Limit.perMinute('rpm', 600, { reserve: { batch: 0.3 } }), SLOTS],
  },
  {
    row: 'shadow of the limit `rpm`, in the config record',
    record: 'config',
    without: setLimits(RPM),
    with: setLimits(Limit.perMinute('rpm', 600, { shadow: true })),
  },
  {
    row: 'shadow, in the bucket',
    record: 'bucket',
    without: acquire(),
    with: acquire(),
    limits: [Limit.perMinute('rpm', 600, { shadow: true }), SLOTS],
  },
  {
    row: '`warnAt: 0.8` of the limit `rpm`, in the config record',
    record: 'config',
    without: setLimits(RPM),
    with: setLimits(Limit.perMinute('rpm', 600, { warnAt: 0.8 })),
  },
  {
    row: '`warnAt` or `atMost`, in the bucket',
    record: 'bucket',
    without: acquire(),
    with: acquire({ atMost: 'rpm' }),
    limits: [Limit.perMinute('rpm', 600, { warnAt: 0.8 }), SLOTS],
  },
  {
    row: 'bypass, in the record of the entity',
    record: 'entity',
    without: create,
    with: async (limiter) => limiter.entities.create({ id: USER.entityId, bypass: true }),
  },
  {
    row: 'portable lease of `rpm: 1, slots: 1`, more than another lease with a holder',
    record: 'bucket',
    without: acquire(),
    with: acquire({ portable: true }),
  },
  {
    row: 'four adjusts of that lease without an `operationId`',
    record: 'bucket',
    without: acquire({ portable: true }),
    with: async (limiter) => {
      const lease = await limiter.acquire({ ...USER, consume: { rpm: 1, slots: 1 }, portable: true });
      for (let adjust = 0; adjust < 5; adjust++) await lease.adjust({ rpm: 1 });
    },
  },
  {
    row: 'trace of that lease after its commit',
    record: 'bucket',
    without: async (limiter) => (await limiter.acquire({ ...USER, consume: { rpm: 1, slots: 1 } })).commit(),
    with: async (limiter) =>
      (await limiter.acquire({ ...USER, consume: { rpm: 1, slots: 1 }, portable: true })).commit(),
  },
  {
    row: 'charge or credit without an id, in the bucket',
    record: 'bucket',
    without: acquire(),
    with: async (limiter) => {
      await acquire()(limiter);
      await limiter.charge({ ...USER, amounts: { rpm: 1 } });
    },
  },
  {
    row: 'receipt `id-1` of a charge of `rpm: 1` of `user-1` on `gpt-4`, a record of its own',
    record: 'receipt',
    without: nothing,
    with: async (limiter) => limiter.charge({ ...USER, amounts: { rpm: 1 }, id: 'id-1' }),
  },
];

/** The rows of the table of bytes on the page. */
function documented(): ReadonlyMap<string, number> {
  const [, table = ''] = readFileSync(PAGE, 'utf8').split(/<!-- \/?feature-bytes -->/);
  const rows = [...table.matchAll(/^\| (.+) \| (\d+) \|$/gm)];
  return new Map(rows.map(([, row, bytes]) => [row ?? '', Number(bytes)]));
}

describe.skipIf(ENGINE.missing)(`the bytes of each feature${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let writes = 0;
  beforeAll(async () => {
    world = await startWorld();
    const { GlobalSecondaryIndexes: _, StreamSpecification: __, ...definition } = tableDefinition(SCRATCH);
    const AttributeDefinitions = definition.AttributeDefinitions?.filter(({ AttributeName: name }) =>
      KEY_NAMES.has(name),
    );
    await world.table.transport.send('CreateTable', { ...definition, AttributeDefinitions }, deadlineIn(10_000));
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** A write is billed by the larger of the item before and after, so every write has a key of its own, of the same length. */
  const unitsOf = async (item: Item): Promise<number> => {
    const PK = { S: String((writes += 1)).padStart(item['PK']!.S!.length, '0') };
    const input = { TableName: SCRATCH, Item: { ...item, PK }, ReturnConsumedCapacity: 'TOTAL' } as const;
    const { ConsumedCapacity } = await world.table.transport.send('PutItem', input, deadlineIn(10_000));
    return ConsumedCapacity?.CapacityUnits ?? Number.NaN;
  };

  /** The size of an item by the units of writes: how much fits beside it into one kilobyte. */
  const sizeOf = async (item: Item | undefined): Promise<number> => {
    if (item === undefined) return 0;
    const padded = async (bytes: number): Promise<number> => unitsOf({ ...item, [PAD]: { S: 'x'.repeat(bytes) } });
    let [fits, exceeds] = [0, 1_024];
    expect([await padded(fits), await padded(exceeds)]).toEqual([1, 2]);
    while (exceeds - fits > 1) {
      const middle = (fits + exceeds) >> 1;
      if ((await padded(middle)) === 1) fits = middle;
      else exceeds = middle;
    }
    return 1_024 - PAD.length - fits;
  };

  const bytesAfter = async ({ record, limits = [RPM, SLOTS] }: Feature, make: Feature['with']): Promise<number> => {
    const space = await world.space();
    await make(await space.open({ limits }));
    const item = await readItem(world.table, KEYS[record](space), deadlineIn(10_000));
    return sizeOf(item);
  };

  test('the page lists the bytes of every feature and of no other', () => {
    expect([...documented().keys()]).toEqual(FEATURES.map(({ row }) => row));
  });

  test.each(FEATURES.map((feature) => [feature.row, feature] as const))(
    'the page lists the bytes that are consumed: %s',
    async (row, feature) => {
      const without = await bytesAfter(feature, feature.without);
      const bytes = (await bytesAfter(feature, feature.with)) - without - (feature.own ?? 0);
      expect(bytes).toBe(documented().get(row));
    },
  );
});
