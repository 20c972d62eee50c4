import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ShardEngine, startShardEngine } from '../../../tests/support/shard-engine.js';
import { amount, holderOf, KEY, levelOf, NOW_MS } from '../../../tests/support/shard-images.js';
import { type Tap, tapped, TUNING } from '../../../tests/support/shard-lines.js';
import type { Call, LevelAsk } from '../../backend.js';
import { Limit } from '../../core/limit.js';
import { findEngine } from '../../testing/dynamodb/index.js';
import { Buckets } from './buckets.js';
import { consume } from './consume.js';
import { PRESSURE } from './pressure.js';

const found = findEngine();
const reason = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;
const RPM = Limit.perMinute('rpm', 1);

describe.skipIf(found.status === 'unavailable')(`taking from all levels in one transaction${reason}`, () => {
  let engine: ShardEngine;
  let namespaces = 0;

  beforeAll(async () => void (engine = await startShardEngine()));
  afterAll(async () => engine?.[Symbol.asyncDispose]());

  const askOf = (entityId: string): LevelAsk => ({
    ...levelOf([RPM], { entityId }),
    asks: [amount('rpm', 1_000)],
    holder: null,
  });
  const levels = [askOf('child'), askOf('parent')];

  function world(tap: Tap = async (_, forward) => forward()) {
    const call: Call = { namespaceId: `atomic${(namespaces += 1)}`, nowMs: NOW_MS, timeoutMs: 10_000, tuning: TUNING };
    const table = tapped(engine.table, tap);
    const buckets = new Buckets(table, PRESSURE);
    const ask = (asked: readonly LevelAsk[], leaseId: string | null = null, atomic = true) =>
      consume(table, buckets, call, { leaseId, levels: asked, ...(atomic ? { atomic } : {}) });
    const tokens = async (entityId: string) => {
      const image = await engine.read(call.namespaceId, { ...KEY, entityId });
      return image?.limits[0]?.tokensMilli;
    };
    return { ask, tokens };
  }

  test('takes from all, or from none', async () => {
    const { ask, tokens } = world();
    expect(await ask(levels)).toMatchObject({ kind: 'granted' });
    expect([await tokens('child'), await tokens('parent')]).toEqual([0, 0]);
    expect(await ask([askOf('other'), askOf('parent')])).toMatchObject({ kind: 'denied', reason: 'exhausted' });
    expect(await tokens('other')).toBeUndefined();
  });

  test('is refused by what somebody else of this process took meanwhile, and not for an id that nobody drew', async () => {
    let reads = 0;
    let other: unknown;
    const { ask, tokens } = world(async (operation, forward) => {
      // Between the look at the child and the transaction.
      if (operation === 'GetItem' && (reads += 1) === 2) other = await ask([askOf('child')], null, false);
      return forward();
    });
    expect(await ask(levels)).toMatchObject({ kind: 'denied', reason: 'exhausted' });
    expect(other).toMatchObject({ kind: 'granted' });
    expect([await tokens('child'), await tokens('parent')]).toEqual([0, undefined]);
  });

  test('says that an id is taken, and takes nothing', async () => {
    const { ask, tokens } = world();
    const free = Limit.perMinute('rpm', 9);
    const held = (entityId: string): LevelAsk => ({ ...askOf(entityId), limits: [free], holder: holderOf() });
    expect(await ask([held('a'), held('b')], 'lease')).toMatchObject({ kind: 'granted' });
    expect(await ask([held('c'), held('b')], 'lease')).toEqual({ kind: 'id-taken' });
    expect(await tokens('c')).toBeUndefined();
  });

  test.each([true, false])('counts once where the answer was lost, whether it landed (%s) or not', async (lands) => {
    let isFirst = true;
    const { ask, tokens } = world(async (operation, forward) => {
      if (operation !== 'TransactWriteItems' || !isFirst) return forward();
      isFirst = false;
      if (lands) await forward();
      throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError', code: 'ECONNRESET' });
    });
    expect(await ask(levels)).toMatchObject({ kind: 'granted' });
    expect([await tokens('child'), await tokens('parent')]).toEqual([0, 0]);
  });
});
