import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fault, type FaultProxy, findEngine, startFaultProxy } from '../../src/testing/dynamodb/index.js';
import type { ClockTakerNews, ClockTakerOrder } from './clock-taker.js';
import { Arena } from '../support/dynamodb/workloads/arena.js';
import { ended, forkable } from '../support/processes/fork-bundled.js';

const found = findEngine('dynoxide');
const why = found.status === 'unavailable' ? ` (skipped: ${found.reason})` : '';

const MINUTES_MS = 60_000;
const PER_SECOND = 40;
/** Ten seconds of refill, so large that a refill of minutes that did not pass would show. */
const CAPACITY = 400;
/** `Date` has whole seconds: each of two clients may be wrong by one. */
const BLUR_S = 2;
const ASKS = 600;

/** How much the worst window was granted above its limit. Negative: below it. */
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

/** How many tokens the store still had, at least, at the worst denial. */
function worstShortage({ grants, denials }: ClockTakerNews): number {
  const startMs = grants[0] ?? 0;
  const shortages = denials.map(([askedMs, toldMs]) => {
    const given = grants.filter((grantMs) => grantMs <= toldMs).length;
    return CAPACITY + PER_SECOND * ((askedMs - startMs) / 1_000 - BLUR_S) - given;
  });
  return Math.max(Number.NEGATIVE_INFINITY, ...shortages);
}

describe.skipIf(found.status === 'unavailable')(`clocks that are wrong by five minutes${why}`, () => {
  let arena: Arena;
  let proxy: FaultProxy;
  let start: Awaited<ReturnType<typeof forkable>>;

  beforeAll(async () => {
    arena = await Arena.start();
    // The time of the store differs from that of every client.
    proxy = await startFaultProxy(arena.engine.endpoint);
    proxy.inject(fault.shiftDate(5 * MINUTES_MS));
    start = await forkable(new URL('./clock-taker.ts', import.meta.url));
  });
  afterAll(async () => {
    await proxy?.stop();
    await arena?.[Symbol.asyncDispose]();
  });

  const nextMessage = async (child: ChildProcess): Promise<ClockTakerNews> => (await once(child, 'message'))[0];

  const order = async (child: ChildProcess): Promise<ClockTakerNews> => {
    const news = nextMessage(child);
    child.send(ASKS);
    return news;
  };

  /** The slow client takes alone first, so that the bucket has the oldest base. Then all of them take. */
  const take = async (trustsClock: boolean): Promise<ClockTakerNews> => {
    const { name: namespace } = await arena.namespace(Date.now(), async () => {});
    const { region } = arena.engine;
    const limit = `tokens:${PER_SECOND}/sec:${CAPACITY}`;
    const common = { endpoint: proxy.endpoint, region, table: arena.tableName, namespace, limit, trustsClock };
    const children = [-5, 0, 5].map((minutes) =>
      start(JSON.stringify({ ...common, skewMs: minutes * MINUTES_MS } satisfies ClockTakerOrder)),
    );
    const exits = children.map(ended);
    await Promise.all(children.map(nextMessage));
    const news = [await order(children[0]!), ...(await Promise.all(children.map(order)))];
    for (const child of children) child.disconnect();
    expect(await Promise.all(exits)).toEqual([0, 0, 0]);
    const grants = news.flatMap((one) => one.grants).toSorted((a, b) => a - b);
    return { grants, denials: news.flatMap((one) => one.denials) };
  };

  test('clients with wrong clocks are granted what the time of the store allows, and denied only what it lacks', async () => {
    const news = await take(false);
    const [excess, shortage] = [worstExcess(news.grants), worstShortage(news)];
    const counts = `${news.grants.length} grants, ${news.denials.length} denials`;
    console.log(`clocks: ${counts}; worst window ${excess.toFixed(1)}, worst denial ${shortage.toFixed(1)}`);
    expect(news.grants.length).toBeGreaterThanOrEqual(CAPACITY);
    expect(excess).toBeLessThanOrEqual(0);
    expect(shortage).toBeLessThanOrEqual(0);
  });

  test('clients with wrong clocks would be granted far more by their own time', async () => {
    expect(worstExcess((await take(true)).grants)).toBeGreaterThan(0);
  });
});
