import { startEngine } from 'headgate/testing/dynamodb';
import { deadlineIn } from '../src/machine-time.js';
import { openTransport } from '../src/backends/dynamodb/client/open-transport.js';
import { sdkTransport } from '../src/backends/dynamodb/client/sdk-transport.js';
import type { Transport } from '../src/backends/dynamodb/client/transport.js';
import { clientOf, createTables, headgate, leanReach, TABLE } from './dynamodb-peers.js';
import { compareCpu, compareLatency, type Load } from './load.js';
import type { Contender } from './race.js';
import type { Row } from './table.js';

const KEYS = Array.from({ length: 1_000 }, (_, index) => `client-${index}`);
const IN_FLIGHT: Load = { keys: KEYS, concurrency: 16, roundMs: 1_000 };
const PATIENCE_MS = 30_000;

/** The lean transport, which a store uses without a client, against the AWS SDK's client. Each request is one write. */
export async function* clientRows(): AsyncGenerator<Row> {
  await using engine = await startEngine('dynoxide');
  const client = clientOf(engine, engine.endpoint);
  const { endpoint, region } = leanReach(engine);
  try {
    await createTables(client);
    const transports = [openTransport({ endpoint, region }), sdkTransport({ client })] as const;
    const [lean, sdk] = transports.map(updater);
    if (lean === undefined || sdk === undefined) throw new Error('Expected two transports');
    const most = { goalIs: 'most' } as const;
    const requests = await compareCpu(IN_FLIGHT, lean, sdk);
    yield { name: 'CPU per request / SDK, 16 in flight', unit: 'us', goal: 0.4, ...most, ...requests };
    const acquires = [await headgate({ endpoint, region }, KEYS), await headgate({ client }, KEYS)] as const;
    const cpu = await compareCpu(IN_FLIGHT, ...acquires);
    yield { name: 'CPU per acquire / SDK, 16 in flight', unit: 'us', goal: 0.4, ...most, ...cpu };
    const latency = await compareLatency(KEYS, ...acquires);
    yield { name: 'latency of an acquire / SDK, 1 caller', unit: 'us', goal: 0.6, ...most, ...latency };
    for (const transport of transports) transport.close();
  } finally {
    client.destroy();
  }
}

/** Writes like an acquire: it adds to two numbers under a condition, and returns the item. */
function updater(transport: Transport): Contender {
  return async (key) => {
    const input = {
      TableName: TABLE,
      Key: { PK: { S: `client#${key}` }, SK: { S: '#STATE' } },
      UpdateExpression: 'SET w = :w ADD b_rph_tk :rph, b_tph_tk :tph',
      ConditionExpression: 'attribute_not_exists(w) OR w = :w AND b_rph_tk < :most',
      ExpressionAttributeValues: {
        ':w': { S: 'abcdefghijklmn' },
        ':rph': { N: '1' },
        ':tph': { N: '100' },
        ':most': { N: '1000000000000' },
      },
      ReturnValues: 'ALL_NEW' as const,
    };
    await transport.send('UpdateItem', input, deadlineIn(PATIENCE_MS));
  };
}
