import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import { reconcile, type ReconcilerOptions, runReconciler } from '../../../src/backends/dynamodb/reconciler/loop.js';
import type { ReconcilerReport } from '../../../src/backends/dynamodb/reconciler/report.js';
import { type Engine, fault, startEngine, startFaultProxy } from '../../../src/testing/dynamodb/index.js';
import { fakeClock } from '../../../src/testing/fake-clock.js';
import { ENGINE } from '../../support/dynamodb/world.js';
import { MINUTE_MS, ReconcilerWorld, slots, START_MS } from '../../support/reconciler/world.js';

const LIMITS = [Limit.concurrent('slots', 5)];

/** A queue: each value goes to the next reader. */
function line<T>() {
  const waiting: ((item: T) => void)[] = [];
  const items: T[] = [];
  return {
    put: (item: T): void => {
      const next = waiting.shift();
      if (next === undefined) items.push(item);
      else next(item);
    },
    next: async (): Promise<T> => {
      const item = items.shift();
      return item === undefined ? new Promise<T>((resolve) => void waiting.push(resolve)) : item;
    },
  };
}

describe.skipIf(ENGINE.missing)(`the loop of the reconciler${ENGINE.note}`, () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine();
    process.env['AWS_ACCESS_KEY_ID'] = engine.credentials.accessKeyId;
    process.env['AWS_SECRET_ACCESS_KEY'] = engine.credentials.secretAccessKey;
  });
  afterAll(async () => engine?.stop());

  const reach = (world: ReconcilerWorld, endpoint = engine.endpoint) => ({
    table: world.table.name,
    region: engine.region,
    endpoint,
  });

  /** A loop in fake time, with its reports and errors. */
  const start = (options: Omit<ReconcilerOptions, 'onReport' | 'onError' | 'signal' | 'clock'>) => {
    const clock = fakeClock(START_MS);
    const stop = new AbortController();
    const reports = line<ReconcilerReport>();
    const errors = line<unknown>();
    const ended = runReconciler({
      ...options,
      clock,
      signal: stop.signal,
      onReport: reports.put,
      onError: errors.put,
    });
    return { clock, stop, reports, errors, ended };
  };

  test('the loop sweeps at once, then after every pause, until its signal aborts', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    const { clock, stop, reports, ended } = start(reach(world));
    expect(await reports.next()).toMatchObject({ visited: 0, complete: true });
    await world.hold('user-1', { asks: slots(1), untilMs: START_MS + MINUTE_MS });
    await clock.advance(5 * MINUTE_MS);
    expect(await reports.next()).toMatchObject({ visited: 1, reclaimed: 1, unmarked: 1 });
    await clock.advance(5 * MINUTE_MS);
    expect(await reports.next()).toMatchObject({ visited: 0 });
    stop.abort();
    await ended;
    expect(clock.sleepers).toBe(0);
  });

  test('the loop continues after a failed sweep, and reports the error', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint);
    const denied = proxy.inject(fault.accessDenied(), { operations: ['Query'] });
    const { clock, stop, reports, errors, ended } = start({ ...reach(world, proxy.endpoint), intervalMs: 1_000 });
    expect(await errors.next()).toMatchObject({ code: 'backend.denied' });
    denied.release();
    await clock.advance(1_000);
    expect(await reports.next()).toMatchObject({ complete: true });
    stop.abort();
    await ended;
  });

  test('the loop rejects at the first sweep that fails if it has no listener', async () => {
    const gone = { table: 'no-such-table', region: engine.region, endpoint: engine.endpoint };
    await expect(runReconciler(gone)).rejects.toMatchObject({ code: 'schema.mismatch' });
    await expect(reconcile(gone)).rejects.toMatchObject({ code: 'schema.mismatch' });
  });

  test('the loop does not sweep if its signal is aborted before the start', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    const reports: ReconcilerReport[] = [];
    const onReport = (report: ReconcilerReport): void => void reports.push(report);
    await runReconciler({ ...reach(world), signal: AbortSignal.abort(), onReport });
    expect(reports).toEqual([]);
  });

  test('a reconciler whose clock is ahead of the store reclaims only holders that have expired', async () => {
    const world = await ReconcilerWorld.create(engine, LIMITS);
    await using proxy = await startFaultProxy(engine.endpoint);
    proxy.inject(fault.shiftDate(-5 * MINUTE_MS));
    const nowMs = Date.now();
    await world.hold('user-1', { asks: slots(1), nowMs: nowMs - 10 * MINUTE_MS, untilMs: nowMs - 3 * MINUTE_MS });
    await world.hold('user-2', { asks: slots(1), nowMs: nowMs - 10 * MINUTE_MS, untilMs: nowMs - 7 * MINUTE_MS });
    expect(await reconcile(reach(world, proxy.endpoint))).toMatchObject({ visited: 2, reclaimed: 1 });
    expect((await world.bucket('user-1')).holders.size).toBe(1);
  });

  test.each([
    ['a table without a name', { table: '' }, 'table'],
    ['a pause that is no time', { table: 'a-table', intervalMs: 0 }, 'intervalMs'],
    ['a pause that never ends', { table: 'a-table', intervalMs: Infinity }, 'intervalMs'],
  ])('the loop refuses %s', async (_, options, field) => {
    await expect(runReconciler(options)).rejects.toMatchObject({ code: 'input.invalid', field });
  });
});
