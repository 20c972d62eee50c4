import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Backend } from '../../../src/backend.js';
import { createDynamoDBBackend, type DynamoDBInternals } from '../../../src/backends/dynamodb/dynamodb.js';
import { file } from '../../../src/backends/embedded/file/file.js';
import { memory } from '../../../src/backends/embedded/memory.js';
import { BackendUnavailable } from '../../../src/core/errors.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { type FakeClock, fakeClock } from '../../../src/testing/fake-clock.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../dynamodb/world.js';

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
}

/** A namespace of its own on one store. */
export interface FeatureSpace {
  readonly clock: FakeClock;
  process(options: LimiterOptions): Promise<Process>;
  /** Only on DynamoDB. */
  readonly dynamo?: { readonly world: DynamoWorld; readonly space: Space };
}

export interface FeatureStore extends AsyncDisposable {
  space(): Promise<FeatureSpace>;
}

export const STORES: readonly (readonly [name: string, start: () => Promise<FeatureStore>])[] = [
  [
    'memory',
    async () =>
      embedded(
        () => memory({ namespaces: ['default'] }),
        () => {},
      ),
  ],
  ['file', startFile],
  ...(ENGINE.missing ? [] : [['dynamodb', startDynamo] as const]),
];

async function startFile(): Promise<FeatureStore> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-'));
  let spaces = 0;
  const next = (): (() => Backend) => {
    const path = join(folder, `${(spaces += 1)}.db`);
    return () => file({ path });
  };
  return embedded(next, () => rmSync(folder, { recursive: true, force: true }));
}

/** `make` returns a store that all processes of a space share, or a function that opens it for each of them. */
function embedded(make: () => Backend | (() => Backend), end: () => void): FeatureStore {
  const opened: RateLimiter[] = [];
  return {
    async space() {
      const clock = fakeClock();
      const store = make();
      return {
        clock,
        async process(options) {
          const { backend, kill } = killable(typeof store === 'function' ? store() : store);
          const limiter = await RateLimiter.open(backend, { clock, leaseSecrets: [SECRET], ...options });
          opened.push(limiter);
          return { limiter, kill };
        },
      };
    },
    async [Symbol.asyncDispose]() {
      for (const limiter of opened) await limiter.close({ leases: 'keep' });
      end();
    },
  };
}

/** Short pauses between attempts. Random, because write ids use the same source. */
const QUICK: DynamoDBInternals = { random: () => Math.random() / 1_000 };

async function startDynamo(): Promise<FeatureStore> {
  const world = await startWorld();
  const { region } = world.engine;
  const opened: RateLimiter[] = [];
  return {
    async space() {
      const space = await world.space();
      return {
        clock: space.clock,
        dynamo: { world, space },
        async process(options) {
          const reach = { table: world.table.name, region, endpoint: world.proxy.endpoint };
          const { backend, kill } = killable(createDynamoDBBackend(reach, QUICK));
          const { clock, namespace } = space;
          const timeouts = { callMs: 10_000, acquireMs: 10_000 };
          const common = { clock, namespace, timeouts, leaseSecrets: [SECRET] as const };
          const limiter = await RateLimiter.open(backend, { ...common, ...options });
          opened.push(limiter);
          return { limiter, kill };
        },
      };
    },
    async [Symbol.asyncDispose]() {
      for (const limiter of opened) await limiter.close({ leases: 'keep' });
      await world[Symbol.asyncDispose]();
    },
  };
}

function killable(store: Backend): { readonly backend: Backend; readonly kill: Process['kill'] } {
  let killed: Kill | null = null;
  let calls = 0;
  const guarded =
    <A extends readonly unknown[], T>(method: (...args: A) => T) =>
    async (...args: A): Promise<Awaited<T>> => {
      const at = calls++;
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
  };
}
