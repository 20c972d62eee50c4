import { DynamoDBClient, type DynamoDBClientConfig, ListTablesCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { sdkTransport } from '../../../../src/backends/dynamodb/client/sdk-transport.js';
import { Limit } from '../../../../src/core/limit.js';
import { fault } from '../../../../src/testing/dynamodb/index.js';
import { type DynamoWorld, ENGINE, type Space, startWorld } from '../../../support/dynamodb/world.js';

const LIMITS = { limits: [Limit.perMinute('rpm', 10_000)] };
const ASK = { entityId: 'user-1', resource: 'gpt-4' };
const UPDATES = { operations: ['UpdateItem'] };

/** Retries up to nine times, without a pause. */
const RETRY_AT_ONCE = {
  acquireInitialRetryToken: async () => tokenOf(0),
  refreshRetryTokenForRetry: async (token: { getRetryCount: () => number }) => {
    if (token.getRetryCount() >= 9) throw new Error('no more attempts');
    return tokenOf(token.getRetryCount() + 1);
  },
  recordSuccess: () => {},
};

function tokenOf(count: number) {
  return { getRetryCount: () => count, getRetryDelay: () => 0 };
}

/** Numbers close to 0 for pauses of almost no time, but different enough for different write ids. */
function shortPauses(): () => number {
  let drawn = 0;
  return () => (drawn += 1) / 2 ** 17;
}

/** The interface before retry tokens, which the SDK still accepts. */
const RETRY_AT_ONCE_OLD = {
  mode: 'custom',
  retry: sendTwice,
};

async function sendTwice<Args, Result>(next: (args: Args) => Promise<Result>, args: Args): Promise<Result> {
  try {
    return await next(args);
  } catch {
    return next(args);
  }
}

const RETRIES: readonly (readonly [string, DynamoDBClientConfig])[] = [
  ['the default retries', {}],
  ['standard retries and 10 attempts', { retryMode: 'standard', maxAttempts: 10 }],
  ['adaptive retries and 10 attempts', { retryMode: 'adaptive', maxAttempts: 10 }],
  ['a custom retry strategy', { retryStrategy: RETRY_AT_ONCE }],
];

describe.skipIf(ENGINE.missing)(`clients of the caller on DynamoDB${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let client: DynamoDBClient | undefined;

  beforeAll(async () => void (world = await startWorld()));
  afterEach(() => {
    client?.destroy();
    world.proxy.heal();
    world.proxy.requests.clear();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const clientWith = (config: DynamoDBClientConfig): DynamoDBClient => {
    const { region, credentials } = world.engine;
    return (client = new DynamoDBClient({ endpoint: world.proxy.endpoint, region, credentials, ...config }));
  };

  const taken = async (space: Space): Promise<number> => {
    const [shard] = await space.shards(ASK.entityId, ASK.resource);
    return Number(shard?.limits[0]?.consumedMilli ?? 0) / 1_000;
  };

  /**
   * Makes refunds that land without an answer, each followed by a write of another process. Returns the tokens that
   * they minted.
   */
  const mintedBy = async (own: DynamoDBClient, lostAnswers: number): Promise<number> => {
    const space = await world.space();
    const limiter = await space.open(LIMITS, { transport: sdkTransport({ client: own }), random: shortPauses() });
    const other = await space.open(LIMITS);
    for (let lost = 1; lost <= lostAnswers; lost++) {
      const lease = await limiter.acquire({ ...ASK, consume: { rpm: 10 } });
      world.proxy.inject(fault.loseAnswer(), { ...UPDATES, times: 1 });
      const held = world.proxy.inject(fault.holdAnswer(), { ...UPDATES, times: 1 });
      const before = await taken(space);
      const rollback = lease.rollback().catch(() => {});
      await held.untilFired();
      await expect.poll(async () => taken(space), { interval: 1 }).toBe(before - 10);
      await other.acquire({ ...ASK, consume: { rpm: 1 } });
      held.release();
      await rollback;
    }
    return lostAnswers - (await taken(space));
  };

  test.each(RETRIES)('a client with %s makes no tokens when 32 answers to refunds are lost', async (_, config) => {
    expect(await mintedBy(clientWith(config), 32)).toBe(0);
  });

  test('a client with a retry strategy of the older kind makes no tokens', async () => {
    expect(await mintedBy(clientWith({ retryStrategy: RETRY_AT_ONCE_OLD }), 4)).toBe(0);
  });

  test('a client whose middleware repeats requests and copies their input makes no tokens', async () => {
    const own = clientWith({});
    own.middlewareStack.add((next) => async (args) => next({ ...args, input: { ...args.input } }), { step: 'build' });
    own.middlewareStack.add((next) => async (args) => sendTwice(next, args), {
      step: 'finalizeRequest',
      priority: 'low',
    });
    expect(await mintedBy(own, 4)).toBe(0);
  });

  test('a client keeps its retries for the requests of its owner, and its middleware for all requests', async () => {
    const seen: string[] = [];
    const own = clientWith({ retryStrategy: RETRY_AT_ONCE });
    type Next = (args: unknown) => Promise<unknown>;
    const note = (next: Next, context: { readonly commandName?: string }) => async (args: unknown) => {
      seen.push(context.commandName ?? '');
      return next(args);
    };
    own.middlewareStack.addRelativeTo(note as never, { relation: 'before', toMiddleware: 'retryMiddleware' });
    const space = await world.space();
    const limiter = await space.open(LIMITS, { transport: sdkTransport({ client: own }) });
    await limiter.acquire({ ...ASK, consume: { rpm: 1 } });
    expect(seen).toContain('PutItemCommand');
    world.proxy.requests.clear();
    world.proxy.inject(fault.loseAnswer(), { operations: ['ListTables'], times: 2 });
    await own.send(new ListTablesCommand({}));
    expect(world.proxy.requests.count('ListTables')).toBe(3);
  });
});
