import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Backend } from '../../src/backend.js';
import { memory } from '../../src/backends/embedded/memory.js';
import { buildFirstNamespaceId } from '../../src/core/identifiers.js';
import { isHeadgateError } from '../../src/core/errors.js';
import { Random } from '../../src/testing/conformance/kit/random.js';
import { type FakeClock, fakeClock } from '../../src/testing/fake-clock.js';
import * as acquires from '../support/models/random-acquires.js';
import * as administration from '../support/models/random-administration.js';
import { runs, runsAll } from '../support/runs.js';
import { withoutResident } from '../support/without-resident.js';
import { World } from '../support/models/world.js';

/** A sixteenth of them in `npm test`. */
const HISTORIES = runs(runs(2_000));
const OPERATIONS = 30;
/** In how many histories everything that a newcomer sees is compared too, which takes longer than a history. */
const VISIBLE_EVERY = 50;
const HOUR_MS = 3_600_000;
/** So that the usage hour ends while configs are fresh. Long pauses are whole hours, and keep it so. */
const START_MS = 500_000 * HOUR_MS - 2_000;
/** So few that a new bucket evicts idle ones. */
const KEPT_BUCKETS = 3;
const NAMESPACE_ID = buildFirstNamespaceId('default');

/** The process that all histories have: rates only, cached for a minute. The others are started at random. */
const PLAIN = { limits: acquires.parse(['rpm:20/min', 'tpm:6000/min:9000']), principal: 'operator' };

let operation = 0;

beforeEach(() => {
  const { crypto } = globalThis;
  const anyValues = crypto.getRandomValues.bind(crypto);
  // Ids of namespaces are 8 bytes of it: the n-th operation draws the same ones in both worlds.
  vi.spyOn(crypto, 'getRandomValues').mockImplementation((array) => {
    if (!(array instanceof Uint8Array) || array.length !== 8) return anyValues(array);
    const random = new Random(operation);
    for (const at of array.keys()) array[at] = random.whole(0, 255);
    return array;
  });
});
afterEach(() => vi.restoreAllMocks());

/** What happens next, how often in a hundred. */
const MIX: readonly (readonly [number, (random: Random, nowMs: number) => acquires.Operation])[] = [
  [28, acquireRates],
  [4, acquireFromMany],
  [2, acquireAcrossConfigs],
  [2, acquireAsChild],
  [2, acquireAcrossDeletion],
  [8, acquires.acquire],
  [4, acquires.tryAcquire],
  [3, acquires.run],
  [2, acquires.ask],
  [17, acquires.useLease],
  [6, administration.configure],
  [2, administration.unconfigure],
  [4, administration.changeEntity],
  [3, administration.changeNamespace],
  [3, administration.resetBucket],
  [4, administration.changePause],
  [2, administration.readBuckets],
  [1, administration.readUsage],
  [2, acquires.restart],
  [1, clearCache],
];

/** Rates only, several times: what the shorter way is for. */
function acquireRates(random: Random): acquires.Operation {
  const entityId = acquires.someEntity(random);
  const resource = acquires.someResource(random);
  const consume = random.pick([{ rpm: 1 }, { rpm: 1, tpm: 300 }, { tpm: 900 }, { tpm: 300, rpm: 2 }, { rpm: 0 }]);
  const times = random.whole(1, 5);
  const own = random.whole(1, 8) === 1 ? { limits: acquires.parse(['rpm:5/min', 'tpm:900/min']) } : {};
  const title = `acquire ${times} times ${JSON.stringify({ entityId, resource, consume, ...own })}`;
  const where = acquires.somewhere(random);
  return acquires.call(
    title,
    random.whole(0, 1) === 0 ? { ...where, process: 0 } : where,
    async (limiter, world, process) => {
      const answers: unknown[] = [];
      for (let time = 0; time < times; time++) {
        const lease = await limiter.acquire({ entityId, resource, consume, ...own }).catch(refusal);
        if (!(lease instanceof Error)) world.keep(process, lease);
        answers.push(lease);
      }
      return answers;
    },
  );
}

/** Nothing is taken, so each bucket is full, and the next new bucket may evict it. */
function acquireFromMany(random: Random): acquires.Operation {
  const order = acquires.ENTITIES.map((entityId) => ({ entityId, at: random.whole(0, 999) }));
  const entities = order.toSorted((one, other) => one.at - other.at).map(({ entityId }) => entityId);
  const resource = acquires.someResource(random);
  return acquires.call(`acquire 0 from ${entities.join(' ')}, twice`, acquires.somewhere(random), async (limiter) => {
    const answers: unknown[] = [];
    for (const entityId of [...entities, ...entities]) {
      answers.push(await limiter.acquire({ entityId, resource, consume: { rpm: 0 } }).catch(refusal));
    }
    return answers;
  });
}

/** Before and after a change that the same process makes. */
function acquireAcrossConfigs(random: Random): acquires.Operation {
  const request = { entityId: acquires.someEntity(random), resource: 'gpt-4', consume: { rpm: 3 } };
  const rule = random.pick(['rpm:4/min', 'rpm:9/sec', 'rpm:50/hour', 'rpm:2/concurrent', 'rpm:30/min@1']);
  return acquires.call(`acquire, set ${rule}, acquire`, acquires.somewhere(random), async (limiter) => {
    const ask = async (): Promise<unknown> => limiter.acquire(request).catch(refusal);
    const before = [await ask(), await ask()];
    await limiter.config.setEntity(request.entityId, 'gpt-4', { limits: acquires.parse([rule]) });
    return [before, await ask(), await ask(), await ask()];
  });
}

/** Spending that also counts at a parent with fewer tokens, from one acquire to the next. */
function acquireAsChild(random: Random): acquires.Operation {
  const request = { entityId: 'user-2', resource: 'gpt-4', consume: { rpm: 1 } };
  return acquires.call('acquire alone, then as a child', acquires.somewhere(random), async (limiter) => {
    const ask = async (): Promise<unknown> => limiter.acquire(request).catch(refusal);
    const alone = [await ask(), await ask()];
    const limits = acquires.parse(['rpm:3/hour']);
    await limiter.config.setEntity('org', 'gpt-4', { limits });
    await limiter.entities.create({ id: 'org' }).catch(refusal);
    await limiter.entities.create({ id: 'user-2', parentId: 'org', cascade: true }).catch(refusal);
    return [alone, await ask(), await ask(), await ask(), await ask()];
  });
}

/** By a limiter that was opened before the namespace was deleted. */
function acquireAcrossDeletion(random: Random): acquires.Operation {
  const where = { ...acquires.somewhere(random), namespace: 'default' };
  const request = { entityId: acquires.someEntity(random), resource: 'gpt-4', consume: { rpm: 1 } };
  return acquires.call('acquire in a namespace that is deleted and recovered', where, async (limiter) => {
    await limiter.namespaces.register('gamma');
    const inside = await limiter.in('gamma');
    const ask = async (): Promise<unknown> => inside.acquire(request).catch(refusal);
    const before = [await ask(), await ask()];
    const { id } = await limiter.namespaces.delete('gamma');
    const deleted = await ask();
    await limiter.namespaces.recover(id);
    return [before, deleted, await ask(), await ask()];
  });
}

function clearCache(random: Random): acquires.Operation {
  return acquires.call('clear the config cache', acquires.somewhere(random), async ({ config }) => {
    const stats = config.cache.stats();
    config.cache.clear();
    return stats;
  });
}

function refusal(error: unknown): Error {
  if (isHeadgateError(error)) return error;
  throw error;
}

function nextOperation(random: Random, nowMs: number): acquires.Operation {
  const total = MIX.reduce((sum, [weight]) => sum + weight, 0);
  let at = random.whole(1, total);
  return MIX.find(([weight]) => (at -= weight) <= 0)![1](random, nowMs);
}

/** Mostly the same millisecond; sometimes the next hour, or back. */
async function passTime(random: Random, clock: FakeClock): Promise<void> {
  if (random.whole(1, 30) === 1) clock.set(clock.now() - random.whole(1, 3_000));
  else await clock.advance(random.pick([0, 0, 0, 0, 1, 250, 900, 5_000, 61_000, HOUR_MS, 26 * HOUR_MS]));
}

interface Counts {
  granted: number;
  refused: number;
  /** Takes from a bucket that was evicted, replaced or of a namespace that is not active. */
  gone: number;
}

function counting(backend: Backend, counts: Counts): Backend {
  const { resident } = backend;
  if (resident === undefined) throw new TypeError('Expected a store with resident buckets');
  return {
    ...backend,
    resident: {
      ...resident,
      take: (bucket, version, asks, nowMs) => {
        const taken = resident.take(bucket, version, asks, nowMs);
        counts[taken ? 'granted' : 'refused'] += 1;
        if ((bucket as { home: { isOpen: boolean } | null }).home?.isOpen !== true) counts.gone += 1;
        return taken;
      },
    },
  };
}

/** The buckets as they are stored, and their usage. */
async function storedState(world: World, stored: Backend): Promise<unknown> {
  const call = { namespaceId: NAMESPACE_ID, nowMs: world.clock.now(), timeoutMs: 1_000 };
  const state: unknown[] = [world.show(world.reported)];
  for (const resource of acquires.RESOURCES) {
    for (const entityId of acquires.ENTITIES) state.push(stored.resident?.find(NAMESPACE_ID, entityId, resource));
    const query = { entityId: null, resource, window: 'hourly', fromMs: 0, toMs: call.nowMs + HOUR_MS } as const;
    state.push(await stored.usage.query(call, query, { limit: 1_000, after: null }));
  }
  return state;
}

/** Everything that a newcomer sees. */
async function visibleState(world: World): Promise<string> {
  const observer = await world.open({ limits: acquires.parse(['rpm:60/min']) });
  const visible = world.show(await administration.visibleState(observer));
  await observer.close();
  return visible;
}

async function playHistory(seed: number, counts: Counts): Promise<void> {
  const random = new Random(seed);
  const clock = fakeClock(START_MS);
  const stores = [memory({ keptBuckets: KEPT_BUCKETS }), memory({ keptBuckets: KEPT_BUCKETS })] as const;
  const [short, ordinary] = [counting(stores[0], counts), withoutResident(stores[1])];
  const worlds = [
    new World('shorter way', () => short, clock, seed),
    new World('ordinary way', () => ordinary, clock, seed),
  ] as const;
  const history: string[] = [];
  try {
    for (const world of worlds) await world.restart(0, PLAIN);
    for (let process = 1; process < acquires.PROCESSES; process++) {
      const { run } = acquires.restart(random, process);
      for (const world of worlds) await run(world);
    }
    for (operation = 1; operation <= OPERATIONS; operation++) {
      const { title, run } = nextOperation(random, clock.now());
      history.push(`${clock.now()}: ${title}`);
      const answers: string[] = [];
      for (const world of worlds) answers.push(world.show(await run(world).catch(refusal)));
      if (answers[0] !== answers[1]) expect(answers[0], 'the answer by the shorter way').toBe(answers[1]);
      await passTime(random, clock);
    }
    expect(await storedState(worlds[0], stores[0])).toEqual(await storedState(worlds[1], stores[1]));
    if (seed % VISIBLE_EVERY === 0) expect(await visibleState(worlds[0])).toBe(await visibleState(worlds[1]));
  } catch (error) {
    console.error(`Seed ${seed}; the last operations were\n${history.slice(-6).join('\n')}`);
    throw error;
  } finally {
    for (const world of worlds) await world.close();
  }
}

test(
  `${HISTORIES} random histories have the same answers and the same stored state with and without resident buckets`,
  { timeout: 600_000 },
  async () => {
    const counts = { granted: 0, refused: 0, gone: 0 };
    const first = Number(process.env['RESIDENT_SEED'] ?? 1);
    for (let seed = first; seed < first + HISTORIES; seed++) await playHistory(seed, counts);
    // Otherwise the histories are not those that they are meant to be.
    expect(counts.granted).toBeGreaterThan(2 * HISTORIES);
    expect(counts.refused).toBeGreaterThan(HISTORIES / 4);
    if (runsAll) expect(counts.gone).toBeGreaterThan(HISTORIES / 200);
  },
);
