import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { file } from '../../../src/backends/embedded/file/file.js';
import { memory } from '../../../src/backends/embedded/memory.js';
import { Limit } from '../../../src/core/limit.js';
import type { AcquireRequest, Amounts } from '../../../src/limiter/acquire/request.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { type FakeClock, fakeClock } from '../../../src/testing/fake-clock.js';
import { shapeOf, splitInto, spreading } from '../dynamodb/shards.js';
import { type DynamoWorld, ENGINE, startWorld } from '../dynamodb/world.js';
import { EagerAccount } from './eager-account.js';

export const BUCKET = { entityId: 'user-1', resource: 'gpt-4' };

export type StoreName = 'memory' | 'file' | 'dynamodb';

/** The stores of the tables. */
const STORES: readonly StoreName[] = ENGINE.missing ? ['memory', 'file'] : ['memory', 'file', 'dynamodb'];

/** A store with one bucket, and the model of its rate. */
export interface Arena {
  readonly limiter: RateLimiter;
  readonly clock: FakeClock;
  readonly account: EagerAccount;
  /** The text of the options that the rate has. */
  readonly options: string;
  /** Splits the bucket in two. */
  split(): Promise<void>;
  /** Looks at the bucket from time to time, as one calm process does, until its shards are merged. */
  merge(): Promise<void>;
}

/** Opens arenas on real stores, and closes them. */
export class Arenas implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'headgate-features-'));
  readonly #opened: RateLimiter[] = [];
  #world: Promise<DynamoWorld> | null = null;
  #files = 0;

  async open(store: StoreName, options: string): Promise<Arena> {
    const arena = store === 'dynamodb' ? await this.#onDynamoDB() : await this.#embedded(store);
    await arena.limiter.config.setSystem({ limits: limitsOf('rpm:60/min', options) });
    return { ...arena, options, account: new EagerAccount(60) };
  }

  async #embedded(store: 'memory' | 'file') {
    const clock = fakeClock();
    const path = join(this.#folder, `${(this.#files += 1)}.db`);
    const backend = store === 'memory' ? memory({ keptBuckets: 0 }) : file({ path });
    const limiter = await RateLimiter.open(backend, { clock });
    this.#opened.push(limiter);
    const nothing = async (): Promise<void> => {};
    return { limiter, clock, split: nothing, merge: nothing };
  }

  async #onDynamoDB() {
    const world = await (this.#world ??= startWorld());
    const space = await world.space();
    const limiter = await space.open({}, spreading());
    return {
      limiter,
      clock: space.clock,
      split: async () => splitInto(2, world, space, BUCKET),
      merge: async () => {
        const calm = await space.open();
        const shape = async () => shapeOf(await space.shards(BUCKET.entityId, BUCKET.resource));
        for (let step = 0; step < 60 && (await shape()) !== '0/1'; step++) {
          await space.clock.advance(600_000);
          await calm.acquire(ask({ rpm: 0 }));
          for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
        }
        if ((await shape()) !== '0/1') throw new Error('The shards were not merged');
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#opened.map(async (limiter) => limiter.close()));
    await (await this.#world)?.[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function limitsOf(rate: string, options: string): Limit[] {
  // A shadow of the rate beside slots that refuse; a reserve of both.
  const ofSlots = options.startsWith('!reserve') ? options : '';
  return [Limit.parse(rate + options), Limit.parse(String(Limit.concurrent('slots', 4)) + ofSlots)];
}

function ask(consume: Amounts, more: Partial<AcquireRequest> = {}): AcquireRequest {
  return { ...BUCKET, ...more, consume };
}

async function pass({ clock, account }: Arena, seconds: number): Promise<void> {
  await clock.advance(seconds * 1_000);
  account.pass(seconds);
}

async function take({ limiter, account }: Arena, rpm: number) {
  account.spend(rpm);
  return limiter.acquire(ask({ rpm }));
}

/** One way to write a bucket. */
export interface WritePath {
  readonly name: string;
  /** Left out: every store has it. */
  readonly store?: StoreName;
  readonly run: (arena: Arena) => Promise<void>;
}

const WRITE_PATHS: readonly WritePath[] = [
  { name: 'take', run: async (arena) => void (await take(arena, 20)) },
  {
    name: 'take from a full bucket',
    run: async (arena) => {
      await take(arena, 20);
      await pass(arena, 600);
      await take(arena, 7);
    },
  },
  {
    name: 'settle of the parameters',
    run: async (arena) => {
      await take(arena, 10);
      await arena.clock.advance(1_000);
      arena.account.pass(1);
      await arena.limiter.config.setSystem({ limits: limitsOf('rpm:60/min:40', arena.options) });
      arena.account.change(40, 1);
      await take(arena, 5);
    },
  },
  {
    name: 'rebase',
    run: async (arena) => {
      await take(arena, 40);
      await pass(arena, 1);
      await arena.limiter.config.setSystem({ limits: limitsOf('rpm:120/min:60', arena.options) });
      arena.account.change(60, 2);
      await take(arena, 5);
      await pass(arena, 3);
    },
  },
  {
    name: 'debit into debt',
    run: async (arena) => {
      const lease = await take(arena, 20);
      await lease.adjust({ rpm: 60 });
      arena.account.spend(60);
      await pass(arena, 50);
    },
  },
  {
    name: 'refund',
    run: async (arena) => {
      const lease = await take(arena, 30);
      await lease.commit({ rpm: 12 });
      arena.account.spend(-18);
    },
  },
  {
    name: 'extend',
    run: async ({ limiter, account }) => {
      const lease = await limiter.acquire(ask({ rpm: 9, slots: 1 }, { leaseTtlMs: 10_000 }));
      account.spend(9);
      await lease.extend(60_000);
    },
  },
  {
    name: 'reclaim',
    run: async (arena) => {
      await arena.limiter.acquire(ask({ rpm: 50, slots: 4 }, { leaseTtlMs: 10_000 }));
      arena.account.spend(50);
      await pass(arena, 10);
      await arena.limiter.acquire(ask({ slots: 4 }));
    },
  },
  {
    name: 'reset',
    run: async (arena) => {
      await take(arena, 50);
      await arena.limiter.buckets.reset(BUCKET);
      arena.account.fill();
    },
  },
  {
    name: 'ttl',
    run: async (arena) => {
      await take(arena, 50);
      await pass(arena, 90 * 86_400);
    },
  },
  {
    name: 'memory eviction',
    store: 'memory',
    run: async (arena) => {
      await take(arena, 50);
      await pass(arena, 600);
      for (let other = 0; other < 50; other++) {
        await arena.limiter.acquire(ask({ rpm: 1 }, { entityId: `other-${other}` }));
      }
    },
  },
  {
    name: 'split',
    store: 'dynamodb',
    run: async (arena) => {
      await take(arena, 1);
      await pass(arena, 600);
      await arena.split();
    },
  },
  {
    name: 'merge',
    store: 'dynamodb',
    run: async (arena) => {
      await take(arena, 1);
      await pass(arena, 600);
      await arena.split();
      await arena.merge();
      arena.account.fill();
      await take(arena, 10);
    },
  },
];

/** Each store with each path that it has. */
export const CELLS: readonly (readonly [path: string, store: StoreName, run: WritePath['run']])[] = WRITE_PATHS.flatMap(
  ({ name, store, run }) =>
    STORES.filter((each) => store === undefined || store === each).map((each) => [name, each, run] as const),
);
