import { Limit } from '../../../src/core/limit.js';
import type { LimiterOptions } from '../../../src/limiter/options.js';
import type { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import type { AcquireRequest } from '../../../src/limiter/acquire/request.js';
import type { Random } from '../../../src/testing/conformance/kit/random.js';
import type { World } from './world.js';

/** One call of the public API, generated once and run on each store. */
export interface Operation {
  readonly title: string;
  readonly run: (world: World) => Promise<unknown>;
  /** For calls that wait: the time within which they must end. */
  readonly meanwhileMs?: number;
}

/** Some ids sort differently alone and as part of a key. Some are members of every object. */
export const ENTITIES = [
  'a',
  'a!',
  'a"',
  'A',
  'a~',
  'user-1',
  'user-2',
  'auth0|7',
  'constructor',
  '__proto__',
  'proj',
  'org',
];
export const RESOURCES = ['gpt-4', 'gpt-4!', 'openai/emb:1', 'constructor'];
export const NAMESPACES = ['default', 'acme', 'beta'];
export const PROCESSES = 3;

/** Mostly one of a few, so that their buckets are exhausted. */
export function someEntity(random: Random): string {
  return random.pick(chance(random, 60) ? ['a', 'a!', 'user-1'] : ENTITIES);
}

export function someResource(random: Random): string {
  return chance(random, 60) ? 'gpt-4' : random.pick(RESOURCES);
}

const RULES: ReadonlyMap<string, readonly string[]> = new Map([
  ['rpm', ['rpm:6/min', 'rpm:10/min:25', 'rpm:7/977ms', 'rpm:3/concurrent', 'rpm:20/min@1']],
  ['tpm', ['tpm:6000/min', 'tpm:1000000000000/day', 'tpm:90/90sec:4000', 'tpm:6000/min:900']],
  ['slots', ['slots:3/concurrent', 'slots:5/concurrent', 'slots:4/sec', 'slots:5/concurrent@1']],
  ['jobs', ['jobs:100/day', 'jobs:24/hour@0', 'jobs:1/365day:50']],
  ['toString', ['toString:9/hour']],
]);
const LIMIT_NAMES = [...RULES.keys()];

/** In percent, how often a rule set has the limit, and how often a call names it. */
const HABITS: ReadonlyMap<string, readonly [has: number, names: number]> = new Map([
  ['rpm', [95, 60]],
  ['tpm', [90, 40]],
  ['slots', [80, 25]],
  ['jobs', [40, 5]],
  ['toString', [30, 3]],
]);

export function someRules(random: Random): string[] {
  const names = LIMIT_NAMES.filter((name) => chance(random, HABITS.get(name)![0]));
  const rules = (names.length === 0 ? ['rpm'] : names).map((name) => random.pick(RULES.get(name)!));
  return chance(random, 5) ? ['rpm:0/day', 'slots:0/concurrent'] : rules;
}

export function parse(rules: readonly string[]): Limit[] {
  return rules.map((rule) => Limit.parse(rule));
}

export function chance(random: Random, percent: number): boolean {
  return random.whole(1, 100) <= percent;
}

function someAmounts(random: Random): Record<string, number> {
  const some = LIMIT_NAMES.filter((name) => chance(random, HABITS.get(name)![1]));
  const named = some.length > 0 || chance(random, 10) ? some : ['rpm'];
  return Object.fromEntries(
    named.map((name) => {
      const amount = chance(random, 96) ? random.pick([0, 1, 1, 2, 3]) : random.pick([20, 61, 999_999_999_999, 1e12]);
      return [name, name === 'tpm' ? Math.min(1e12, amount * 300) : amount];
    }),
  );
}

/** The process and the namespace of a call. */
export function somewhere(random: Random): { readonly process: number; readonly namespace: string } {
  const namespace = chance(random, 70) ? 'default' : random.pick(NAMESPACES);
  return { process: random.whole(0, PROCESSES - 1), namespace };
}

export function call(
  title: string,
  where: { readonly process: number; readonly namespace: string },
  work: (limiter: RateLimiter, world: World, process: number) => Promise<unknown>,
): Operation {
  return {
    title: `${where.namespace}, process ${where.process}: ${title}`,
    run: async (world) => work(await world.process(where.process, where.namespace), world, where.process),
  };
}

function someRequest(random: Random): { readonly text: string; readonly build: () => AcquireRequest } {
  const own = chance(random, 10) ? someRules(random) : null;
  const request = {
    entityId: someEntity(random),
    resource: someResource(random),
    ...(chance(random, 95) ? { consume: someAmounts(random) } : {}),
    ...(chance(random, 15) ? { leaseTtlMs: random.pick([5_000, 60_000, 600_000, 7 * 86_400_000]) } : {}),
  };
  return {
    text: JSON.stringify({ ...request, ...(own === null ? {} : { limits: own }) }),
    build: () => ({ ...request, ...(own === null ? {} : { limits: parse(own) }) }),
  };
}

/** One or several asks in a row, so that buckets are exhausted. */
export function tryAcquire(random: Random): Operation {
  const { text, build } = someRequest(random);
  const times = chance(random, 60) ? 1 : random.whole(2, 8);
  return call(`tryAcquire ${times} times ${text}`, somewhere(random), async (limiter, world, process) => {
    const decisions: unknown[] = [];
    for (let time = 0; time < times; time++) {
      const decision = await limiter.tryAcquire(build());
      if (decision.granted) world.keep(process, decision.lease);
      decisions.push(decision);
    }
    return decisions;
  });
}

export function acquire(random: Random): Operation {
  const { text, build } = someRequest(random);
  return call(`acquire ${text}`, somewhere(random), async (limiter, world, process) => {
    const lease = await limiter.acquire(build());
    world.keep(process, lease);
    return lease;
  });
}

export function waitFor(random: Random): Operation {
  const { text, build } = someRequest(random);
  const timeoutMs = random.pick([0, 50, 700, 2_500]);
  const operation = call(
    `acquire, waiting ${timeoutMs} ms, ${text}`,
    somewhere(random),
    async (limiter, world, process) => {
      const decision = await limiter.tryAcquire({ ...build(), wait: { timeoutMs } });
      if (decision.granted) world.keep(process, decision.lease);
      return [decision, world.clock.now()];
    },
  );
  return { ...operation, meanwhileMs: timeoutMs + 1 };
}

export function run(random: Random): Operation {
  const { text, build } = someRequest(random);
  const actuals = chance(random, 50) ? someAmounts(random) : null;
  const throws = chance(random, 50);
  const onThrow = random.pick(['rollback', 'commit'] as const);
  const title = `run ${text}, settling ${JSON.stringify(actuals)}, ${throws ? `throws, ${onThrow}` : 'returns'}`;
  return call(title, somewhere(random), async (limiter, world, process) => {
    const work = limiter.run({ ...build(), onThrow }, async (lease) => {
      world.keep(process, lease);
      if (actuals !== null) await lease.settle(actuals);
      if (throws) throw new RangeError('made up by the test');
      return 'returned';
    });
    const result = await work.catch((error: unknown) => error);
    return [result, world.lease(0)];
  });
}

export function ask(random: Random): Operation {
  const { text, build } = someRequest(random);
  const verb = random.pick(['status', 'available', 'timeUntilAvailable'] as const);
  return call(`${verb} ${text}`, somewhere(random), async (limiter) => limiter[verb](build()));
}

/** An operation on one of the newest leases, which may have ended. */
export function useLease(random: Random): Operation {
  const back = random.whole(0, 24);
  const amounts = someAmounts(random);
  const negative = Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, -amount]));
  const ttlMs = chance(random, 30) ? undefined : random.pick([5_000, 120_000]);
  const [title, work] = random.pick<readonly [string, (lease: NonNullable<ReturnType<World['lease']>>) => unknown]>([
    [`adjust ${JSON.stringify(amounts)}`, (lease) => lease.adjust(amounts)],
    [`adjust ${JSON.stringify(negative)}`, (lease) => lease.adjust(negative)],
    [`settle ${JSON.stringify(amounts)}`, (lease) => lease.settle(amounts)],
    ['release', (lease) => lease.release()],
    [`extend ${ttlMs}`, (lease) => lease.extend(ttlMs)],
    ['commit', (lease) => lease.commit()],
    [`commit ${JSON.stringify(amounts)}`, (lease) => lease.commit(amounts)],
    ['rollback', (lease) => lease.rollback()],
    ['dispose', (lease) => lease[Symbol.asyncDispose]()],
    ['signal', (lease) => lease.signal.aborted],
  ]);
  return {
    title: `lease ${back} back: ${title}`,
    run: async (world) => {
      const lease = world.lease(back);
      if (lease === undefined) return 'no lease yet';
      const result = await Promise.resolve(work(lease)).catch((error: unknown) => error);
      return [result, lease];
    },
  };
}

/** Closes a process and opens it again with other options. The first process stays open, so that it can clean up. */
export function restart(random: Random, process = random.whole(1, PROCESSES - 1)): Operation {
  const rules = chance(random, 80) ? someRules(random) : [];
  const options: LimiterOptions = {
    principal: `operator-${random.whole(1, 3)}`,
    caller: `worker-${process}`,
    onExpiry: random.pick(['keep', 'refund']),
    configCacheMs: random.pick([0, 1_000, 60_000]),
    leaseTtlMs: random.pick([5_000, 60_000]),
  };
  return {
    title: `restart process ${process} with ${rules.join(' ')} ${JSON.stringify(options)}`,
    run: (world) => world.restart(process, { ...options, limits: parse(rules) }),
  };
}
