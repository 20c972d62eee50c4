import { DynamoDB } from '@aws-sdk/client-dynamodb';
import { openTransport } from '../src/backends/dynamodb/client/open-transport.js';
import type { Transport } from '../src/backends/dynamodb/client/transport.js';
import { createDynamoDBBackend } from '../src/backends/dynamodb/dynamodb.js';
import { Limit } from '../src/core/limit.js';
import { RateLimitExceeded } from '../src/core/rate-limit-exceeded.js';
import { RateLimiter } from '../src/limiter/rate-limiter.js';
import { bareBucket, TABLE } from './dynamodb-peers.js';

const PATIENCE_MS = 30_000;
const RESOURCE = 'gpt-4';

/** One bucket, and how this process takes from it. */
export interface TakerOrder {
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  /** A limit as text; null: bare updates by the SDK's client, without a limiter. */
  readonly limit: string | null;
  /** Tokens to take before the first round. */
  readonly takeFirst: number;
  /** How long an acquire waits for tokens; 0: not at all. */
  readonly waitMs: number;
  /** 0 only prepares. */
  readonly callers: number;
  /** The callers start before the part that is measured. 0: everything is measured, until the last caller has its answer. */
  readonly settleMs: number;
  readonly measuredMs: number;
}

export interface Taken {
  readonly elapsedMs: number;
  readonly grants: number;
  readonly writes: number;
  /** The writes whose condition failed. */
  readonly refused: number;
  readonly latenciesMs: Float64Array;
}

/** Requests of this process since it started. */
const sent = { writes: 0, refused: 0 };
const takers = new Map<string, Promise<() => Promise<boolean>>>();

/** A process with its own limiters, caches and connections, which executes the orders that it is sent. */
export function takeFromBuckets(): void {
  process.on('disconnect', () => process.exit());
  process.on('message', (order) => {
    follow(order as TakerOrder).then(
      (taken) => process.send?.(taken),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
}

async function follow(order: TakerOrder): Promise<Taken> {
  let opening = takers.get(order.bucket);
  if (opening === undefined) {
    opening = order.limit === null ? bareTaker(order) : limitedTaker(order, order.limit);
    takers.set(order.bucket, opening);
  }
  const take = await opening;
  if (order.callers === 0) return { elapsedMs: 0, grants: 0, writes: 0, refused: 0, latenciesMs: new Float64Array() };
  const fromMs = performance.now() + order.settleMs;
  const toMs = fromMs + order.measuredMs;
  const lastMs = order.settleMs === 0 ? Infinity : toMs;
  const latenciesMs: number[] = [];
  const call = async (): Promise<void> => {
    for (let startMs = performance.now(); startMs < toMs; startMs = performance.now()) {
      const granted = await take();
      const endMs = performance.now();
      if (granted && endMs >= fromMs && endMs < lastMs) latenciesMs.push(endMs - startMs);
    }
  };
  const calls = Promise.all(Array.from({ length: order.callers }, call));
  const before = await countsAt(fromMs);
  const after = await countsAt(toMs);
  await calls;
  return {
    elapsedMs: Math.min(performance.now(), lastMs) - fromMs,
    grants: latenciesMs.length,
    writes: after.writes - before.writes,
    refused: after.refused - before.refused,
    latenciesMs: new Float64Array(latenciesMs),
  };
}

async function countsAt(untilMs: number): Promise<typeof sent> {
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, untilMs - performance.now())));
  return { ...sent };
}

async function limitedTaker(order: TakerOrder, text: string): Promise<() => Promise<boolean>> {
  const { endpoint, region, bucket, takeFirst, waitMs } = order;
  const limit = Limit.parse(text);
  const transport = counting(openTransport({ endpoint, region }));
  const limiter = await RateLimiter.open(createDynamoDBBackend({ table: TABLE }, { transport }), {
    limits: [limit],
    timeouts: { callMs: PATIENCE_MS, acquireMs: PATIENCE_MS },
  });
  const request = { entityId: bucket, resource: RESOURCE };
  if (takeFirst > 0) await limiter.acquire({ ...request, consume: { [limit.name]: takeFirst } });
  const ask = { ...request, consume: { [limit.name]: 1 }, ...(waitMs > 0 ? { wait: { timeoutMs: waitMs } } : {}) };
  return async () => {
    try {
      await (await limiter.acquire(ask)).commit();
      return true;
    } catch (error) {
      if (error instanceof RateLimitExceeded) return false;
      throw error;
    }
  };
}

async function bareTaker({ endpoint, region, bucket }: TakerOrder): Promise<() => Promise<boolean>> {
  const requestHandler = { httpAgent: { keepAlive: true, maxSockets: 256 } };
  const client = new DynamoDB({ endpoint, region, maxAttempts: 1, requestHandler });
  const update = await bareBucket(client, [bucket]);
  return async () => {
    sent.writes += 1;
    await update(bucket);
    return true;
  };
}

function counting(transport: Transport): Transport {
  return {
    ...transport,
    send: async (operation, ...rest) => {
      if (/^(Batch|Transact)?Write|^(Delete|Put|Update)Item$/.test(operation)) sent.writes += 1;
      try {
        return await transport.send(operation, ...rest);
      } catch (error) {
        if (error instanceof Error && error.name === 'ConditionalCheckFailedException') sent.refused += 1;
        throw error;
      }
    },
  };
}
