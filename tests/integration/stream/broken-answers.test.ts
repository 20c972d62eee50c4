import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isHeadgateError } from '../../../src/core/errors.js';
import { Limit } from '../../../src/core/limit.js';
import { openSdkStream } from '../../../src/backends/dynamodb/stream/worker/sdk-stream.js';
import type { StreamApi } from '../../../src/backends/dynamodb/stream/worker/stream-api.js';
import { fault } from '../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../support/dynamodb/world.js';
import { workOff } from '../../support/stream/world.js';
import { readTotals } from '../../support/stream/usage-ledger.js';

const LIMITS = { limits: [Limit.perMinute('rpm', 60_000)] };
const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };
const READS = ['DescribeStream', 'GetShardIterator', 'GetRecords'] as const;
const FAULTS = [
  ['without a body', fault.emptyAnswer()],
  ['of a bare object', fault.bareAnswer()],
  ['that ends in its middle', fault.truncatedAnswer()],
  ['of a page with status 200', fault.htmlAnswer(200)],
  ['of a page with status 403', fault.htmlAnswer(403)],
] as const;

describe.skipIf(ENGINE.missing)(`broken answers of a stream${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let stream: StreamApi;

  beforeAll(async () => {
    world = await startWorld();
    stream = await openSdkStream(world.table, { endpoint: world.proxy.endpoint, region: world.engine.region });
  });
  afterEach(() => world.proxy.heal());
  afterAll(async () => {
    stream?.close();
    await world?.[Symbol.asyncDispose]();
  });

  test.each(FAULTS)('an answer %s is neither the end of a shard nor a stream without shards', async (_, broken) => {
    const [shard] = await stream.listShards();
    const place = await stream.locate(shard!.id, null);
    const reads = [
      async () => stream.listShards(),
      async () => stream.locate(shard!.id, null),
      async () => stream.read(place),
    ];
    for (const [at, read] of reads.entries()) {
      const struck = world.proxy.inject(broken, { operations: [READS[at]!] });
      await expect(read()).rejects.toSatisfy((error) => isHeadgateError(error));
      expect(struck.fired).toBeGreaterThan(0);
      struck.release();
      await expect(read()).resolves.toBeTruthy();
    }
  });

  test.each(FAULTS)('a worker counts every change although each of its reads got an answer %s', async (_, broken) => {
    const space = await world.space();
    const limiter = await space.open(LIMITS);
    for (let taken = 0; taken < 3; taken++) await limiter.acquire(ASK);
    for (const operation of READS) world.proxy.inject(broken, { operations: [operation], times: 1 });
    const trimmed: unknown[] = [];
    await workOff(world, { endpoint: world.proxy.endpoint, onTrimmed: (part) => trimmed.push(part) });
    expect(trimmed).toEqual([]);
    const totals = Object.values(await readTotals(limiter, ['gpt-4']));
    expect(totals).toEqual([1, 2, 3].map(() => ({ rpm: 3, acquires: 3 })));
  });
});
