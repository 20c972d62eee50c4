import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Backend } from '../../../src/backend.js';
import { createDynamoDBBackend } from '../../../src/backends/dynamodb/dynamodb.js';
import { file } from '../../../src/backends/embedded/file/file.js';
import { memory } from '../../../src/backends/embedded/memory.js';
import { BackendUnavailable } from '../../../src/core/errors.js';
import { Limit } from '../../../src/core/limit.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { type FakeClock, fakeClock } from '../../../src/testing/fake-clock.js';
import { cleanLargeFile } from '../clean-large-file.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../dynamodb/world.js';
import { quickRandom } from '../dynamodb/quick-random.js';

export const SECRET = 'a secret of the feature tests';

/** What happens to one call of a process to its store. `at`: how many calls come before it. */
export interface Kill {
  readonly at: number;
  /** `request`: the store never gets the call. `answer`: the store serves it, and the process does not learn that. */
  readonly lost: 'request' | 'answer';
}

/** A limiter with its own caches, whose store calls for leases can be cut off. */
export interface Process {
  readonly limiter: RateLimiter;
  /** From the named call on, no call of this process gets through. null: all do. */
  kill(kill: Kill | null): void;
  /** Holds one call of this process back until it is released, while its later calls go on. */
  hold(at: number): HeldCall;
}

/** A call that reaches the store late. */
export interface HeldCall {
  /** Resolves when the process has made the call. */
  readonly made: Promise<void>;
  release(): void;
}

/** A namespace of its own on one store. */
export interface FeatureSpace {
  readonly clock: FakeClock;
  process(options: LimiterOptions): Promise<Process>;
  /** Lets the store remove buckets that nothing depends on. DynamoDB removes none. */
  evict(limiter: RateLimiter): Promise<void>;
  /** Only on DynamoDB. */
  readonly dynamo?: { readonly world: DynamoWorld; readonly space: Space };
}

export interface FeatureStore extends AsyncDisposable {
  space(): Promise<FeatureSpace>;
}

export const STORES: readonly (readonly [name: 'memory' | 'file' | 'dynamodb', start: () => Promise<FeatureStore>])[] =
  [
    [
      'memory',
      async () =>
        embedded(
          () => ({ store: memory({ namespaces: ['default'], keptBuckets: 0 }), evict: visitOthers }),
          () => {},
        ),
    ],
    ['file', startFile],
    ...(ENGINE.missing ? [] : [['dynamodb', startDynamo] as const]),
  ];

/** Buckets that are new make the store look for idle ones. */
async function visitOthers(limiter: RateLimiter, clock: FakeClock): Promise<void> {
  const limits = [Limit.perSecond('idle', 1_000)];
  for (let other = 0; other < 50; other++) {
    await limiter.acquire({ entityId: `idle-${clock.now()}-${other}`, resource: 'r', consume: { idle: 0 }, limits });
  }
}

/** A store that all processes of a space share, or a function that opens it for each of them. */
interface EmbeddedStore {
  readonly store: Backend | (() => Backend);
  readonly evict: (limiter: RateLimiter, clock: FakeClock) => Promise<void>;
}

async function startFile(): Promise<FeatureStore> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-'));
  let spaces = 0;
  const next = (): EmbeddedStore => {
    const path = join(folder, `${(spaces += 1)}.db`);
    return { store: () => file({ path }), evict: async (_, clock) => cleanLargeFile(path, clock.now()) };
  };
  return embedded(next, () => rmSync(folder, { recursive: true, force: true }));
}

function embedded(make: () => EmbeddedStore, end: () => void): FeatureStore {
  const opened: RateLimiter[] = [];
  return {
    async space() {
      const clock = fakeClock();
      const { store, evict } = make();
      return {
        clock,
        evict: async (limiter) => evict(limiter, clock),
        async process(options) {
          const { backend, kill, hold } = killable(typeof store === 'function' ? store() : store);
          const limiter = await RateLimiter.open(backend, {
            clock,
            leaseSecrets: [SECRET],
            onError: () => {},
            ...options,
          });
          opened.push(limiter);
          return { limiter, kill, hold };
        },
      };
    },
    async [Symbol.asyncDispose]() {
      for (const limiter of opened) await limiter.close({ leases: 'keep' });
      end();
    },
  };
}

async function startDynamo(): Promise<FeatureStore> {
  const world = await startWorld();
  const { region } = world.engine;
  const opened: RateLimiter[] = [];
  return {
    async space() {
      const space = await world.space();
      return {
        clock: space.clock,
        evict: async () => {},
        dynamo: { world, space },
        async process(options) {
          const reach = { table: world.table.name, region, endpoint: world.proxy.endpoint };
          const { backend, kill, hold } = killable(createDynamoDBBackend(reach, { random: quickRandom }));
          const { clock, namespace } = space;
          const timeouts = { callMs: 10_000, acquireMs: 10_000 };
          const common = { clock, namespace, timeouts, leaseSecrets: [SECRET] as const, onError: () => {} };
          const limiter = await RateLimiter.open(backend, { ...common, ...options });
          opened.push(limiter);
          return { limiter, kill, hold };
        },
      };
    },
    async [Symbol.asyncDispose]() {
      for (const limiter of opened) await limiter.close({ leases: 'keep' });
      await world[Symbol.asyncDispose]();
    },
  };
}

function killable(store: Backend): { readonly backend: Backend } & Pick<Process, 'kill' | 'hold'> {
  let killed: Kill | null = null;
  let calls = 0;
  const held = new Map<number, () => Promise<void>>();
  const guarded =
    <A extends readonly unknown[], T>(method: (...args: A) => T) =>
    async (...args: A): Promise<Awaited<T>> => {
      const at = calls++;
      const wait = held.get(at);
      held.delete(at);
      await wait?.();
      if (killed === null || at < killed.at) return await method(...args);
      if (at === killed.at && killed.lost === 'answer') await method(...args);
      // Contention does not open the breaker, which is not the subject here.
      throw new BackendUnavailable('this process was killed', 'contended');
    };
  return {
    backend: { ...store, operate: guarded(store.operate), extend: guarded(store.extend) },
    kill(kill) {
      killed = kill;
      calls = 0;
    },
    hold(at) {
      const call = calls + at;
      let [toldMade, free] = [() => {}, () => {}];
      const made = new Promise<void>((resolve) => (toldMade = resolve));
      const released = new Promise<void>((resolve) => (free = resolve));
      held.set(call, async () => {
        toldMade();
        await released;
      });
      return {
        made,
        release() {
          held.delete(call);
          free();
        },
      };
    },
  };
}
