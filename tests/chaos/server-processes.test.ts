import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createTable } from '../../src/backends/dynamodb/index.js';
import { HeadgateClient } from '../../src/client/client.js';
import { RemoteError } from '../../src/client/http.js';
import { isHeadgateError } from '../../src/core/errors.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { type Engine, startEngine } from '../../src/testing/dynamodb/index.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { type ServeProcess, startServe } from '../support/server/serve-process.js';

const SECRET = 'a-secret-of-servers-that-is-long-enough';
const LIMITS = ['rpd:1000000/day', 'slots:64/concurrent'];
const KEY = { entityId: 'shared', resource: 'batch' };
const CALLERS = 64;
/** Without retries: the test must see every answer that does not come. */
const ONCE = { retries: 0, timeoutMs: 30_000 };

let folder: string;
let engine: Engine | undefined;
const started: ServeProcess[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-servers-'));
  if (ENGINE.missing) return;
  engine = await startEngine();
  process.env['AWS_ACCESS_KEY_ID'] = engine.credentials.accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = engine.credentials.secretAccessKey;
});
afterEach(async () => {
  for (const { child, ended } of started.splice(0)) {
    child.kill('SIGKILL');
    await ended;
  }
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await engine?.stop();
});

/** The address of a new store. */
const STORES = {
  file: async (name: string) => Promise.resolve(`file:${join(folder, `${name}.db`)}`),
  dynamodb: async (name: string) => {
    const { endpoint, region } = engine!;
    await createTable({ tableName: name, endpoint, region });
    return `dynamodb://${name}?region=${region}&endpoint=${endpoint}`;
  },
} as const;

async function serve(store: string): Promise<ServeProcess> {
  const limits = LIMITS.flatMap((limit) => ['--limit', limit]);
  const server = await startServe(['--store', store, ...limits], { HEADGATE_LEASE_SECRET: SECRET });
  started.push(server);
  return server;
}

async function openStore(store: string): Promise<RateLimiter> {
  return RateLimiter.open(store, { limits: LIMITS.map((text) => Limit.parse(text)), leaseSecrets: [SECRET] });
}

describe.each(Object.entries(STORES))('servers on a store of the kind %s', (kind, storeOf) => {
  describe.skipIf(kind === 'dynamodb' && ENGINE.missing)(`servers on ${kind}${ENGINE.note}`, () => {
    test('a server that gets SIGTERM under load answers what it has accepted, and ends within 10 s', async () => {
      const store = await storeOf('terminated');
      const server = await serve(store);
      const client = new HeadgateClient(server.url, ONCE);
      const tally = { granted: 0, refusedConnections: 0, other: [] as unknown[] };
      const ask = async (): Promise<boolean> => {
        try {
          await client.acquire({ ...KEY, consume: { rpd: 1 } });
          tally.granted += 1;
          return true;
        } catch (error) {
          if (isHeadgateError(error, 'backend.unavailable')) tally.refusedConnections += 1;
          else tally.other.push(error);
          return false;
        }
      };
      const callers = Array.from({ length: CALLERS }, async () => {
        while (await ask());
      });
      await expect.poll(() => tally.granted).toBeGreaterThan(500);
      const signalledMs = performance.now();
      server.child.kill('SIGTERM');
      expect(await server.ended).toBe(0);
      expect(performance.now() - signalledMs).toBeLessThan(10_000);
      await Promise.all(callers);
      expect(tally.other).toEqual([]);
      expect(tally.refusedConnections).toBe(CALLERS);
      await using limiter = await openStore(store);
      // Neither an answered grant that is not stored, nor a stored one whose answer was cut off.
      const bucket = await limiter.buckets.get(KEY);
      const consumed = bucket?.limits.find(({ limit }) => limit.name === 'rpd')?.consumed;
      expect(consumed).toBe(tally.granted);
    });

    test('a server that gets SIGTERM while clients wait and listen grants or refuses each, and cuts no answer', async () => {
      const store = await storeOf('waited-for');
      const server = await serve(store);
      const client = new HeadgateClient(server.url, ONCE);
      await using limiter = await openStore(store);
      const half = await limiter.acquire({ ...KEY, consume: { slots: 32 } });
      await limiter.acquire({ ...KEY, consume: { slots: 32 } });
      const events = await fetch(`${server.url}/v1/events`);
      const streamed = events.text();
      const ask = { ...KEY, consume: { slots: 1 }, wait: { timeoutMs: 60_000 } };
      const answers = Array.from({ length: 40 }, async () =>
        client.acquire(ask).then(
          () => 'granted',
          (error: unknown) => (error instanceof RemoteError ? error.problem.status : error),
        ),
      );
      const waiting = async (): Promise<number> => {
        const lines = await (await fetch(`${server.url}/v1/waiting`)).json();
        return (lines as { readonly items: readonly { readonly depth: number }[] }).items[0]?.depth ?? 0;
      };
      await expect.poll(waiting).toBe(40);
      server.child.kill('SIGTERM');
      await half.commit();
      expect(await server.ended).toBe(0);
      const ends = await Promise.all(answers);
      const granted = ends.filter((end) => end === 'granted').length;
      expect(ends.filter((end) => end !== 'granted')).toEqual(Array.from({ length: 40 - granted }, () => 503));
      expect(await streamed).toContain(': connected');
      // Every answered grant is in the store, and no other one.
      expect((await limiter.buckets.get(KEY))?.holders).toBe(1 + granted);
    });

    test('two servers settle the leases of each other, also after one was killed with -9', async () => {
      const store = await storeOf('two-servers');
      const [one, other] = await Promise.all([serve(store), serve(store)]);
      const [first, second] = [new HeadgateClient(one.url, ONCE), new HeadgateClient(other.url, ONCE)];
      const here = await first.acquire({ ...KEY, consume: { rpd: 10, slots: 1 } });
      const there = await second.acquire({ ...KEY, consume: { rpd: 10, slots: 1 } });
      await second.resume(handedOver(here)).commit({ rpd: 4 });
      await first.resume(handedOver(there)).rollback();
      await using limiter = await openStore(store);
      const taken = async () => {
        const bucket = await limiter.buckets.get(KEY);
        return { rpd: bucket?.limits.find(({ limit }) => limit.name === 'rpd')?.consumed, leases: bucket?.holders };
      };
      expect(await taken()).toEqual({ rpd: 4, leases: 0 });

      const kept = await Promise.all(
        Array.from({ length: 20 }, () => first.acquire({ ...KEY, consume: { rpd: 10, slots: 1 } })),
      );
      one.child.kill('SIGKILL');
      expect(await one.ended).toBe('SIGKILL');
      expect(await taken()).toEqual({ rpd: 204, leases: 20 });
      // A repeated end gets the same answer, and changes nothing.
      for (let time = 0; time < 2; time++) {
        const moved = kept.map((lease) => second.resume(handedOver(lease)));
        await Promise.all(moved.map((lease, at) => (at % 2 === 0 ? lease.commit({ rpd: 1 }) : lease.rollback())));
        expect(await taken()).toEqual({ rpd: 14, leases: 0 });
      }
      expect(await second.available(KEY)).toMatchObject({ slots: 64 });
    });
  });
});

/** What a process passes on to another so that it continues the lease. */
function handedOver(lease: Awaited<ReturnType<HeadgateClient['acquire']>>) {
  const { id, token, entityId, resource, consumed, expiresAt } = lease;
  return { id, token, entityId, resource, consumed, expiresAt: expiresAt?.toISOString() ?? null };
}
