import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openTransport } from '../../../../src/backends/dynamodb/client/open-transport.js';
import type { Operation, Operations, Transport } from '../../../../src/backends/dynamodb/client/transport.js';
import { Limit } from '../../../../src/core/limit.js';
import type { Deadline } from '../../../../src/machine-time.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

/*
 * A server or proxy answers a request twice, and the second answer arrives when the next request was sent: it looks like the
 * answer to that one.
 */

const LIMITS = { limits: [Limit.perMinute('rpm', 300)] };
const ask = (entityId: string, rpm: number) => ({ entityId, resource: 'gpt-4', consume: { rpm } });

type Settled = PromiseSettledResult<object>;

/** Sends every request. After `swap`, the next UpdateItem gets the answer to the last one. */
class SwappingTransport implements Transport {
  readonly #inner: Transport;
  #last: Settled | null = null;
  #swaps = false;

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  swap(): void {
    this.#swaps = true;
  }

  async send<Op extends Operation>(operation: Op, input: Operations[Op][0], deadline: Deadline) {
    const [own] = (await Promise.allSettled([this.#inner.send(operation, input, deadline)])) as [Settled];
    const answer = operation === 'UpdateItem' && this.#swaps ? this.#last : own;
    if (operation === 'UpdateItem') [this.#last, this.#swaps] = [own, false];
    if (answer?.status !== 'fulfilled') throw answer?.reason;
    return answer.value as Operations[Op][1];
  }

  storeTimeMs = (): number | null => this.#inner.storeTimeMs();
  close = (): void => this.#inner.close();
}

describe.skipIf(ENGINE.missing)(`answers of DynamoDB to other requests${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let transport: SwappingTransport;

  beforeAll(async () => {
    world = await startWorld();
    const { endpoint, region } = world.engine;
    transport = new SwappingTransport(openTransport({ endpoint, region }));
  });
  afterAll(async () => {
    transport.close();
    await world?.[Symbol.asyncDispose]();
  });

  const taken = async (space: Space, entityId: string): Promise<number> => {
    const [shard] = await space.shards(entityId, 'gpt-4');
    return Number(shard?.limits[0]?.consumedMilli) / 1_000;
  };

  test('the item of another bucket is not taken for the one that was written', async () => {
    const space = await world.space();
    const limiter = await space.open(LIMITS, { transport });
    for (const entityId of ['a', 'b']) await limiter.acquire(ask(entityId, 1));
    await limiter.acquire(ask('a', 200));
    transport.swap();
    await limiter.acquire(ask('b', 1));
    expect(await taken(space, 'b')).toBe(2);
    expect(await limiter.tryAcquire(ask('b', 250))).toMatchObject({ granted: true });
  });

  test('a write that landed is not sent again because the answer to another one refuses', async () => {
    const space = await world.space();
    const [limiter, other] = [await space.open(LIMITS, { transport }), await space.open(LIMITS)];
    for (const entityId of ['a', 'b']) await limiter.acquire(ask(entityId, 1));
    await other.acquire(ask('a', 295));
    expect(await limiter.tryAcquire(ask('a', 10))).toMatchObject({ granted: false });
    transport.swap();
    await limiter.acquire(ask('b', 1));
    expect(await taken(space, 'b')).toBe(2);
  });
});
