/**
 * A process with its own limiter over its own DynamoDB store: separate caches and connections. It executes orders, at
 * the time that each order gives.
 */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createDynamoDBBackend } from '../../src/backends/dynamodb/dynamodb.js';
import { sdkTransport } from '../../src/backends/dynamodb/client/sdk-transport.js';
import type { Transport } from '../../src/backends/dynamodb/client/transport.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { BucketWorker, type TakerNews, type TakerOrder } from '../support/dynamodb/workloads/bucket-work.js';

let nowMs = 0;
let worker: BucketWorker | null = null;
let limiter: RateLimiter | null = null;
let reported: string[] = [];
let requests = 0;

async function open({ endpoint, region, table, namespace, pressure }: Extract<TakerOrder, { kind: 'open' }>) {
  await limiter?.close();
  // Eight of these processes may share two processors with other programs.
  const requestHandler = { connectionTimeout: 20_000 };
  const client = new DynamoDBClient({ endpoint, region, maxAttempts: 1, requestHandler });
  const transport = counting(sdkTransport({ client }));
  limiter = await RateLimiter.open(createDynamoDBBackend({ table }, { transport, pressure }), {
    namespace,
    clock: { now: () => nowMs },
    timeouts: { callMs: 30_000, acquireMs: 30_000 },
    // Longer than a tick, so that the deny cache is used.
    denyCacheMs: 1_500,
    onError: (error, where) => reported.push(`${where}: ${String(error)}`),
  });
  worker = new BucketWorker(limiter);
}

function counting(transport: Transport): Transport {
  return {
    ...transport,
    send: async (...request) => {
      requests += 1;
      return transport.send(...request);
    },
  };
}

async function follow(order: TakerOrder): Promise<TakerNews> {
  ({ nowMs } = order);
  if (order.kind === 'open') await open(order);
  const outcomes = order.kind === 'tick' ? ((await worker?.doAll(order.operations)) ?? []) : [];
  const news = { outcomes, reported, requests };
  reported = [];
  requests = 0;
  return news;
}

process.on('message', (order) => {
  follow(order as TakerOrder).then(
    (news) => process.send?.(news, () => {}),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
