import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { text } from '../../../src/backends/dynamodb/table/attributes.js';
import { deadlineIn } from '../../../src/machine-time.js';
import { buildUsageKey } from '../../../src/backends/dynamodb/table/keys.js';
import { decodeUsage, encodeUsage } from '../../../src/backends/dynamodb/table/records.js';
import { readItem, send, type Table } from '../../../src/backends/dynamodb/client/requests.js';
import { openTransport } from '../../../src/backends/dynamodb/client/open-transport.js';
import { Limit } from '../../../src/core/limit.js';
import { USAGE_WINDOWS, type UsageWindow, windowStart } from '../../../src/core/usage/usage.js';
import { createStreamHandler } from '../../../src/backends/dynamodb/stream/lambda.js';
import { processBatch } from '../../../src/backends/dynamodb/stream/process-batch.js';
import type { StreamApi } from '../../../src/backends/dynamodb/stream/worker/stream-api.js';
import { fault } from '../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../support/dynamodb/world.js';
import { batchTools, openStream, readRecords, workOff } from '../../support/stream/world.js';

const LIMITS = { limits: [Limit.perMinute('rpm', 60_000)] };
const RESOURCE = 'gpt-4';
const MAX_BYTES = 400 * 1_024;
const DEADLINE_MS = 10_000;
const REFUSED = /not in the monthly usage of full on gpt-4 .*maximum allowed size/;

/**
 * With about 5,000 different per-call limit sets in a month, a usage record reaches 400 KB, the largest size of an
 * item.
 */
describe.skipIf(ENGINE.missing)(`usage that DynamoDB refuses${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let stream: StreamApi;

  beforeAll(async () => {
    world = await startWorld();
    stream = await openStream(world);
  });
  afterEach(() => world.proxy.heal());
  afterAll(async () => {
    stream?.close();
    await world?.[Symbol.asyncDispose]();
  });

  const keyOf = ({ ns, clock }: Space, entityId: string, window: UsageWindow) =>
    buildUsageKey(ns, entityId, RESOURCE, window, windowStart(window, clock.now()));

  const acquiresOf = async (space: Space, entityId: string): Promise<Record<string, number>> => {
    const read = async (window: UsageWindow) => {
      const item = await readItem(world.table, keyOf(space, entityId, window), deadlineIn(DEADLINE_MS));
      return [window, item === undefined ? 0 : decodeUsage(item).acquires] as const;
    };
    return Object.fromEntries(await Promise.all(USAGE_WINDOWS.map(read)));
  };

  /** Fills the record, so that it has room only for changes of existing attributes. */
  const fill = async (space: Space, entityId: string): Promise<void> => {
    const key = keyOf(space, entityId, 'monthly');
    const made = {
      ...key,
      entityId,
      resource: RESOURCE,
      window: 'monthly' as const,
      startMs: windowStart('monthly', space.clock.now()),
      consumedMilli: new Map<string, number>(),
      acquires: 0,
      expired: 0,
    };
    const found = await readItem(world.table, key, deadlineIn(DEADLINE_MS));
    const Item = { ...(found ?? encodeUsage(space.ns, made)) };
    // The filler leaves only the bytes by which numbers may grow. Another `q_` attribute needs more.
    const used = Object.entries(Item).reduce((sum, [name, value]) => sum + name.length + sizeOf(value), 0);
    Item['q_full'] = text('x'.repeat(MAX_BYTES - used - 'q_full'.length - 48));
    const answer = await send(world.table, 'PutItem', { TableName: world.table.name, Item }, deadlineIn(DEADLINE_MS));
    expect(answer).toMatchObject({ ok: true });
  };

  const recordsOf = async (ns: string): Promise<unknown[]> =>
    (await readRecords(stream)).filter((record) => JSON.stringify(record).includes(`"${ns}/BUCKET#`));

  const acquire = async (space: Space, entityId: string, limits?: readonly Limit[]): Promise<void> => {
    const limiter = await space.open(LIMITS);
    await limiter.acquire({ entityId, resource: RESOURCE, consume: { rpm: 1 }, ...(limits ? { limits } : {}) });
  };

  const COUNTED = { hourly: 1, daily: 1, monthly: 1 };

  test('the Lambda handler reports what does not fit into a full usage record, and counts everything else of the batch', async () => {
    const space = await world.space();
    await fill(space, 'full');
    for (const entityId of ['full', 'other']) await acquire(space, entityId);
    const Records = await recordsOf(space.ns);
    const lines: { message: string; reason?: string; poison?: number }[] = [];
    const { endpoint, region } = world.engine;
    const log = (line: string): void => void lines.push(JSON.parse(line));
    const handle = createStreamHandler({ table: world.table.name, endpoint, region, log });
    const eventSourceARN = `arn:aws:dynamodb:us-east-1:1:table/limits/stream/${stream.label}`;
    const answer = await handle({ Records: Records.map((record) => ({ ...(record as object), eventSourceARN })) });
    expect(answer).toEqual({ batchItemFailures: [] });
    expect(lines).toContainEqual(expect.objectContaining({ reason: expect.stringMatching(REFUSED) }));
    expect(lines).toContainEqual(expect.objectContaining({ message: 'headgate stream', poison: 1 }));
    expect(await acquiresOf(space, 'full')).toEqual({ ...COUNTED, monthly: 0 });
    expect(await acquiresOf(space, 'other')).toEqual(COUNTED);
  });

  test('the worker reports what does not fit into a full usage record, and leaves nothing of it for the next worker', async () => {
    const space = await world.space();
    await fill(space, 'full');
    for (const entityId of ['full', 'other']) await acquire(space, entityId);
    const reasons: string[] = [];
    const errors: unknown[] = [];
    const last = await workOff(world, {
      onPoison: ({ reason }) => reasons.push(reason),
      onError: (error) => errors.push(error),
    });
    expect(errors).toEqual([]);
    expect(reasons.filter((reason) => reason.includes(space.ns))).toEqual([expect.stringMatching(REFUSED)]);
    expect(last.poison).toBeGreaterThanOrEqual(1);
    expect(await acquiresOf(space, 'full')).toEqual({ ...COUNTED, monthly: 0 });
    expect(await acquiresOf(space, 'other')).toEqual(COUNTED);
    reasons.length = 0;
    await workOff(world, { onPoison: ({ reason }) => reasons.push(reason) });
    expect(reasons).toEqual([]);
  });

  test('a full usage record counts buckets that already have an attribute, beside one that does not fit', async () => {
    const space = await world.space();
    await acquire(space, 'full');
    const tools = batchTools(world.table);
    await processBatch(tools, stream.label, await recordsOf(space.ns));
    await fill(space, 'full');
    await acquire(space, 'full');
    await acquire(space, 'full', [Limit.perMinute('rpm', 7)]);
    const result = await processBatch(tools, stream.label, await recordsOf(space.ns));
    expect(result).toMatchObject({ failures: [], poison: 1 });
    expect(tools.poison).toEqual([expect.objectContaining({ reason: expect.stringMatching(REFUSED) })]);
    expect(await acquiresOf(space, 'full')).toEqual({ hourly: 3, daily: 3, monthly: 2 });
  });

  test.each([
    ['throttles', fault.throttle()],
    ['is out', fault.serverError(503)],
    ['denies access', fault.accessDenied()],
  ])('a batch fails and is delivered again while DynamoDB %s, and no change is skipped', async (_, trouble) => {
    const space = await world.space();
    await acquire(space, 'other');
    const transport = openTransport({ endpoint: world.proxy.endpoint, region: world.engine.region });
    const table: Table = { ...world.table, transport, random: () => 0 };
    world.proxy.inject(trouble, { operations: ['UpdateItem'] });
    const tools = batchTools(table);
    const records = await recordsOf(space.ns);
    expect((await processBatch(tools, stream.label, records)).failures).toHaveLength(1);
    expect(tools.poison).toEqual([]);
    world.proxy.heal();
    expect((await processBatch(tools, stream.label, records)).failures).toEqual([]);
    expect(await acquiresOf(space, 'other')).toEqual(COUNTED);
    transport.close();
  });
});

function sizeOf(value: { readonly S?: string | undefined; readonly N?: string | undefined }): number {
  return value.S === undefined ? 21 : Buffer.byteLength(value.S);
}
