import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Call } from '../../../../src/backend.js';
import { findEngine } from '../../../../src/testing/dynamodb/index.js';
import {
  change,
  connectionLost,
  enter,
  NO_PAUSES,
  openStores,
  START_MS,
  startTable,
  type Stores,
  type Tap,
  type TestTable,
} from '../../../support/dynamodb/stores.js';

const found = findEngine();
const suite = found.status === 'available' ? describe : describe.skip;
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;

const LIFE_MS = 60_000;

suite(`the gate of namespaces${reason}`, () => {
  let table: TestTable;
  let elsewhere: Stores;

  beforeAll(async () => {
    table = await startTable();
    elsewhere = openStores(table.transport);
  });
  afterAll(async () => table[Symbol.asyncDispose]());

  /** A process whose reads are counted, and wait until `hold` resolves. */
  const watched = (hold: { until: Promise<void> } = { until: Promise.resolve() }) => {
    const reads: string[] = [];
    const answers: string[] = [];
    const tap: Tap = async (operation, input, forward) => {
      if (operation === 'GetItem') reads.push(operation);
      const output = await forward(input);
      answers.push(operation);
      await hold.until;
      return output;
    };
    return { reads, answers, stores: openStores(table.transport, tap, NO_PAUSES) };
  };
  const later = (call: Call, ms: number): Call => ({ ...call, nowMs: call.nowMs + ms });

  test('concurrent checks of a namespace share one read, and later checks use the cache until the entry expires', async () => {
    const { call } = await enter(elsewhere);
    const { reads, stores } = watched();
    await Promise.all([stores.gate.check(call), stores.gate.check(call), stores.gate.check(later(call, 5))]);
    expect(reads).toHaveLength(1);
    expect(stores.gate.check(later(call, LIFE_MS * 0.8 - 1))).toBeUndefined();
    expect(reads).toHaveLength(1);
    await stores.gate.check(later(call, LIFE_MS));
    expect(reads).toHaveLength(2);
    await stores.gate.check({ ...call, nowMs: START_MS - 1 });
    expect(reads).toHaveLength(3);
  });

  test('the status of a namespace is read again in the background before its cache entry expires, so that no call waits', async () => {
    const { call } = await enter(elsewhere);
    const { reads, stores } = watched();
    await stores.gate.check(call);
    expect(stores.gate.check(later(call, LIFE_MS * 0.9))).toBeUndefined();
    expect(stores.gate.check(later(call, LIFE_MS * 0.9))).toBeUndefined();
    expect(reads).toHaveLength(2);
    await expect.poll(() => stores.gate.check(later(call, LIFE_MS + 1))).toBeUndefined();
    expect(reads).toHaveLength(2);
  });

  test('a check needs no read for a namespace that was just looked up', async () => {
    const { id, call } = await enter(elsewhere);
    const { reads, stores } = watched();
    await stores.namespaces.read(call, `case-${id}`);
    expect(stores.gate.check(call)).toBeUndefined();
    expect(reads).toHaveLength(1);
  });

  test('a check refuses a namespace that another process deleted within one cache lifetime, and accepts it again after its recovery', async () => {
    const { id, call } = await enter(elsewhere);
    const { stores } = watched();
    await stores.gate.check(call);
    await elsewhere.namespaces.delete(change(), `case-${id}`);
    expect(stores.gate.check(call)).toBeUndefined();
    const refusal = { code: 'namespace.missing', message: expect.stringContaining('is deleted') as string };
    await expect(stores.gate.check(later(call, LIFE_MS))).rejects.toMatchObject(refusal);
    expect(() => stores.gate.check(later(call, LIFE_MS + 1))).toThrow('is deleted');
    await elsewhere.namespaces.recover(change(), id);
    await stores.gate.check(later(call, 2 * LIFE_MS));
  });

  test('a namespace that this process deletes, recovers or purges leaves the cache at once', async () => {
    const { id, call } = await enter(elsewhere);
    const { stores } = watched();
    const { namespaces, gate } = stores;
    await gate.check(call);
    await namespaces.delete(change(), `case-${id}`);
    await expect(gate.check(call)).rejects.toThrow('is deleted');
    await namespaces.recover(change(), id);
    await gate.check(call);
    await namespaces.delete(change(), `case-${id}`);
    await namespaces.purge(change(), id);
    await expect(gate.check(call)).rejects.toThrow('is purging');
  });

  test('a status that was read before a change of this process is not cached', async () => {
    const { id, call } = await enter(elsewhere);
    let release = (): void => {};
    const hold = { until: new Promise<void>((resolve) => (release = resolve)) };
    const { stores, answers } = watched(hold);
    const early = stores.gate.check(call);
    await expect.poll(() => answers.length).toBe(1);
    await elsewhere.namespaces.delete(change(), `case-${id}`);
    stores.gate.forget(id);
    release();
    await early;
    await expect(stores.gate.check(call)).rejects.toThrow('is deleted');
  });

  test('a failed read of a namespace is not cached', async () => {
    const { call } = await enter(elsewhere);
    let isOut = true;
    const stores = openStores(
      table.transport,
      async (_operation, input, forward) => {
        if (isOut) throw connectionLost();
        return forward(input);
      },
      NO_PAUSES,
    );
    await expect(stores.gate.check(call)).rejects.toMatchObject({ code: 'backend.unavailable' });
    isOut = false;
    await stores.gate.check(call);
  });
});
