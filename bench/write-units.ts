import { type RecordedRequest, type RequestLog, startFaultProxy } from 'headgate/testing/dynamodb';
import type { Engine } from 'headgate/testing/dynamodb';
import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { clientOf } from './dynamodb-peers.js';
import { callEach } from './load.js';
import type { Contender } from './race.js';
import { sized } from './settings.js';

const DECISIONS = 1_280;
const CONCURRENCY = 256;

/** Measures the write units per decision of a contender, through a proxy that counts requests. */
export async function withWriteMeter<T>(
  engine: Engine,
  keys: readonly string[],
  make: (client: DynamoDB, keys: readonly string[]) => Promise<Contender>,
  use: (unitsPerDecision: () => Promise<number>) => Promise<T>,
): Promise<T> {
  await using proxy = await startFaultProxy(engine.endpoint, { record: true, askForCapacity: true });
  const client = clientOf(engine, proxy.endpoint);
  try {
    const contender = await make(client, keys);
    const asked = Array.from({ length: sized(DECISIONS) }, (_, at) => keys[at % keys.length] ?? '');
    return await use(async () => {
      proxy.requests.clear();
      await callEach(asked, CONCURRENCY, contender);
      return unitsOf(proxy.requests) / asked.length;
    });
  } finally {
    client.destroy();
  }
}

/** AWS bills a write whose condition failed like a successful one, but reports no units for it. All items here are below 1 KB. */
export function unitsOf(requests: RequestLog): number {
  return requests.consumed().writeUnits + requests.recorded.filter(isRefused).length;
}

function isRefused({ answer }: RecordedRequest): boolean {
  return String(answer?.body['__type']).includes('ConditionalCheckFailed');
}
