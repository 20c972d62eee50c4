import { type RecordedRequest, type RequestLog, startFaultProxy } from 'headgate/testing/dynamodb';
import type { Engine } from 'headgate/testing/dynamodb';
import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { clientOf } from './dynamodb-peers.js';
import { callEach } from './load.js';
import type { Contender } from './race.js';

const DECISIONS = 2_560;
const CONCURRENCY = 256;

/** Write units per decision of a contender, measured through a proxy that counts requests. */
export async function writeUnitsPerDecision(
  engine: Engine,
  keys: readonly string[],
  make: (client: DynamoDB, keys: readonly string[]) => Promise<Contender>,
): Promise<number> {
  await using proxy = await startFaultProxy(engine.endpoint, { record: true, askForCapacity: true });
  const client = clientOf(engine, proxy.endpoint);
  try {
    const contender = await make(client, keys);
    proxy.requests.clear();
    const asked = Array.from({ length: DECISIONS }, (_, at) => keys[at % keys.length] ?? '');
    await callEach(asked, CONCURRENCY, contender);
    return unitsOf(proxy.requests) / DECISIONS;
  } finally {
    client.destroy();
  }
}

/** AWS bills a write whose condition failed like a successful one, but reports no units for it. All items here are below 1 KB. */
function unitsOf(requests: RequestLog): number {
  return requests.consumed().writeUnits + requests.recorded.filter(isRefused).length;
}

function isRefused({ answer }: RecordedRequest): boolean {
  return String(answer?.body['__type']).includes('ConditionalCheckFailed');
}
