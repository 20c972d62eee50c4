import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fault, type FaultProxy, findEngine, startFaultProxy } from '../../src/testing/dynamodb/index.js';
import type { ClockTakerNews, ClockTakerOrder } from '../support/clock-taker.js';
import { Arena } from '../support/dynamodb-arena.js';
import { ended, forkable } from '../support/fork-bundled.js';

const found = findEngine('dynoxide');
const why = found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

const MINUTES_MS = 60_000;
const PER_SECOND = 40;
/** So large that minutes which were never there would show: ten times what falls in a second. */
const CAPACITY = 400;
/** `Date` has whole seconds: each of two clients may be wrong by one. */
const BLUR_S = 2;
const ALONE_MS = 1_000;

/** By how much the worst window was given more than it may be; negative: it was given less. */
function worstExcess(grants: readonly number[]): number {
  let worst = Number.NEGATIVE_INFINITY;
  for (const [from, fromMs] of grants.entries()) {
    for (const [more, toMs] of grants.slice(from).entries()) {
      const allowed = CAPACITY + PER_SECOND * ((toMs - fromMs) / 1_000 + BLUR_S);
      worst = Math.max(worst, more + 1 - allowed);
    }
  }
  return worst;
}

describe.skipIf(found.status === 'unavailable')(`machines whose clocks are wrong by five minutes${why}`, () => {
  let arena: Arena;
  let proxy: FaultProxy;
  let start: Awaited<ReturnType<typeof forkable>>;

  beforeAll(async () => {
    arena = await Arena.start();
    // The store's own time is none of theirs.
    proxy = await startFaultProxy(arena.engine.endpoint);
    proxy.inject(fault.shiftDate(5 * MINUTES_MS));
    start = await forkable('clock-taker.ts');
  });
  afterAll(async () => {
    await proxy?.stop();
    await arena?.[Symbol.asyncDispose]();
  });

  const heard = async (child: ChildProcess): Promise<ClockTakerNews> => (await once(child, 'message'))[0];

  const takeFor = async (child: ChildProcess, forMs: number): Promise<ClockTakerNews> => {
    const news = heard(child);
    child.send(forMs);
    return news;
  };

  /** The slow one alone, so that the bucket is as old as can be; then all of them. Gives when each grant was asked for. */
  const take = async (forMs: number, trustsClock: boolean): Promise<readonly number[]> => {
    const { name: namespace } = await arena.namespace(Date.now(), async () => {});
    const { region } = arena.engine;
    const limit = `tokens:${PER_SECOND}/sec:${CAPACITY}`;
    const common = { endpoint: proxy.endpoint, region, table: arena.tableName, namespace, limit, trustsClock };
    const children = [-5, 0, 5].map((minutes) =>
      start(JSON.stringify({ ...common, skewMs: minutes * MINUTES_MS } satisfies ClockTakerOrder)),
    );
    const exits = children.map(ended);
    await Promise.all(children.map(heard));
    const first = await takeFor(children[0]!, ALONE_MS);
    const others = await Promise.all(children.map(async (child) => takeFor(child, forMs)));
    for (const child of children) child.disconnect();
    expect(await Promise.all(exits)).toEqual([0, 0, 0]);
    return [first, ...others].flat().toSorted((a, b) => a - b);
  };

  test('grant by the time of the store: within its bounds, and not much less', { timeout: 60_000 }, async () => {
    const forMs = 3_000;
    const grants = await take(forMs, false);
    const excess = worstExcess(grants);
    const seconds = (ALONE_MS + forMs) / 1_000;
    const [least, most] = [seconds - BLUR_S, seconds + BLUR_S].map((falling) => CAPACITY + PER_SECOND * falling);
    console.log(
      `clocks: ${grants.length} grants of ${least} to ${most}, worst window ${excess.toFixed(1)}; ${seconds} s`,
    );
    expect(excess).toBeLessThanOrEqual(0);
    expect(grants.length).toBeGreaterThanOrEqual(least!);
  });

  test('would grant far more by their own', { timeout: 60_000 }, async () => {
    expect(worstExcess(await take(1_500, true))).toBeGreaterThan(0);
  });
});
