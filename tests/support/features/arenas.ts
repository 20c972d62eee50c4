import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sendRead, sendRepeatable } from '../../../src/backends/dynamodb/client/requests.js';
import type { ShardImage } from '../../../src/backends/dynamodb/table/items.js';
import { buildShardKey, keyItem } from '../../../src/backends/dynamodb/table/keys.js';
import { file } from '../../../src/backends/embedded/file/file.js';
import { memory } from '../../../src/backends/embedded/memory.js';
import { Limit } from '../../../src/core/limit.js';
import type { AcquireRequest, Amounts } from '../../../src/limiter/acquire/request.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { deadlineIn } from '../../../src/machine-time.js';
import { type FakeClock, fakeClock } from '../../../src/testing/fake-clock.js';
import { cleanLargeFile } from '../clean-large-file.js';
import { shapeOf, splitInto, spreading } from '../dynamodb/shard/shards.js';
import { type DynamoWorld, type Space, startWorld } from '../dynamodb/world.js';
import { EagerAccount } from './eager-account.js';

export const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };
export const SLOTS = 4;

const TIMEOUT_MS = 10_000;
const LONG_MS = 90 * 86_400_000;

export type StoreName = 'memory' | 'file' | 'dynamodb';

/** What a path does to a bucket of one store, besides what a limiter does. */
interface Ground {
  readonly limiter: RateLimiter;
  readonly clock: FakeClock;
  /** Splits the bucket in two. */
  split(): Promise<void>;
  /** Looks at the bucket from time to time, as one calm process does, until its shards are merged. */
  merge(): Promise<void>;
  /** The only shard as it is stored. null: the store is not DynamoDB. */
  image(): Promise<ShardImage | null>;
  /** Lets the store remove buckets that nothing depends on, as it does beside the writes of other buckets. */
  evict(): Promise<void>;
  /** Lets time pass until the store may delete the bucket as expired, and deletes it. */
  expire(): Promise<void>;
}

/** A store with one bucket, and the model of its rate. */
export interface Arena extends Ground {
  readonly account: EagerAccount;
  /** The text of the options that the rate has. */
  readonly options: string;
}

/** Opens arenas on real stores, and closes them. */
export class Arenas implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'headgate-features-'));
  readonly #opened: RateLimiter[] = [];
  #world: Promise<DynamoWorld> | null = null;
  #files = 0;

  async open(store: StoreName, options: string, more: LimiterOptions = {}): Promise<Arena> {
    const ground = store === 'dynamodb' ? await this.#onDynamoDB(more) : await this.#embedded(store, more);
    await ground.limiter.config.setSystem({ limits: limitsOf('rpm:60/min', options) });
    return { ...ground, options, account: new EagerAccount(60) };
  }

  async #embedded(store: 'memory' | 'file', more: LimiterOptions): Promise<Ground> {
    const clock = fakeClock();
    const path = join(this.#folder, `${(this.#files += 1)}.db`);
    const backend = store === 'memory' ? memory({ keptBuckets: 0 }) : file({ path });
    const limiter = await RateLimiter.open(backend, { clock, ...more });
    this.#opened.push(limiter);
    const nothing = async (): Promise<void> => {};
    const evict = async (): Promise<void> => {
      if (store === 'file') return cleanLargeFile(path, clock.now());
      for (let other = 0; other < 50; other++) {
        await limiter.acquire(ask({ rpm: 1 }, { entityId: `other-${clock.now()}-${other}` }));
      }
    };
    const expire = async (): Promise<void> => {
      await clock.advance(LONG_MS);
      await evict();
    };
    return { limiter, clock, split: nothing, merge: nothing, image: async () => null, evict, expire };
  }

  async #onDynamoDB(more: LimiterOptions): Promise<Ground> {
    const world = await (this.#world ??= startWorld());
    const space = await world.space();
    const { clock } = space;
    const shards = async () => space.shards(BUCKET.entityId, BUCKET.resource);
    return {
      limiter: await space.open(more, spreading()),
      clock,
      split: async () => splitInto(2, world, space, BUCKET),
      merge: async () => {
        const calm = await space.open(more);
        const shape = async () => shapeOf(await shards());
        for (let step = 0; step < 60 && (await shape()) !== '0/1'; step++) {
          await clock.advance(600_000);
          await calm.acquire(ask({ rpm: 0 }));
          for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
        }
        if ((await shape()) !== '0/1') throw new Error('The shards were not merged');
      },
      image: async () => {
        const [image, second] = await shards();
        if (image === undefined || second !== undefined) throw new Error('The bucket does not have one shard');
        return image;
      },
      evict: async () => {
        throw new Error('DynamoDB removes no bucket before its ttl');
      },
      expire: async () => deleteExpired(world, space, await shards()),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#opened.map(async (limiter) => limiter.close()));
    await (await this.#world)?.[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** The engines of the tests delete nothing by themselves: this deletes one item as DynamoDB does after its ttl. */
export async function deleteExpired(
  { table }: DynamoWorld,
  { ns, clock }: Space,
  [image]: readonly ShardImage[],
): Promise<void> {
  const ttlSec = image?.ttlSec ?? null;
  if (ttlSec === null) throw new Error('The bucket has no ttl');
  await clock.advance((ttlSec + 1) * 1_000 - clock.now());
  const shard = { TableName: table.name, Key: keyItem(buildShardKey(ns, { ...BUCKET, shard: 0 })) };
  const stored = await sendRead(table, 'GetItem', { ...shard, ConsistentRead: true }, deadlineIn(TIMEOUT_MS));
  if (Number(stored.Item?.['ttl']?.N) !== ttlSec) throw new Error('The ttl has moved');
  await sendRepeatable(table, 'DeleteItem', shard, deadlineIn(TIMEOUT_MS));
}

/** Options that begin with `slots` are those of the slots, and the rate has none. */
export function limitsOf(rate: string, options: string): Limit[] {
  const [, onlyOfSlots] = options.split('slots');
  if (onlyOfSlots !== undefined) {
    return [Limit.parse(rate), Limit.parse(String(Limit.concurrent('slots', SLOTS)) + onlyOfSlots)];
  }
  // A shadow of the rate beside slots that refuse; a reserve of both.
  const ofSlots = options.startsWith('!reserve') ? options : '';
  return [Limit.parse(rate + options), Limit.parse(String(Limit.concurrent('slots', SLOTS)) + ofSlots)];
}

export function ask(consume: Amounts, more: Partial<AcquireRequest> = {}): AcquireRequest {
  return { ...BUCKET, ...more, consume };
}

export async function pass({ clock, account }: Pick<Arena, 'clock' | 'account'>, seconds: number): Promise<void> {
  await clock.advance(seconds * 1_000);
  account.pass(seconds);
}

export async function take({ limiter, account }: Pick<Arena, 'limiter' | 'account'>, rpm: number) {
  account.spend(rpm);
  return limiter.acquire(ask({ rpm }));
}
