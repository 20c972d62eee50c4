import { type AttributeValue, DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { parseSentFile } from '../../src/cli/limits/parse-sent-file.js';
import { createTable, dynamodb } from '../../src/backends/dynamodb/index.js';
import { type Engine, startEngine } from '../../src/testing/dynamodb/index.js';
import { ENGINE } from '../support/dynamodb/world.js';
import { runs } from '../support/runs.js';
import { calls, expectAnswers } from '../support/server/operation-calls.js';
import { requestServer } from '../support/server/request-server.js';

describe.skipIf(ENGINE.missing)(`a server on DynamoDB${ENGINE.note}`, () => {
  let engine: Engine;
  let client: DynamoDBClient;
  let tables = 0;

  beforeAll(async () => {
    engine = await startEngine();
    const { endpoint, region, credentials } = engine;
    process.env['AWS_ACCESS_KEY_ID'] = credentials.accessKeyId;
    process.env['AWS_SECRET_ACCESS_KEY'] = credentials.secretAccessKey;
    client = new DynamoDBClient({ endpoint, region, credentials, maxAttempts: 1 });
  });
  afterAll(async () => {
    client?.destroy();
    await engine?.stop();
  });

  /** Every item of the table, in the order of its keys. */
  async function itemsOf(table: string): Promise<string> {
    const items: string[] = [];
    let next: Record<string, AttributeValue> | undefined;
    do {
      const page = await client.send(new ScanCommand({ TableName: table, ExclusiveStartKey: next }));
      items.push(...(page.Items ?? []).map((item) => JSON.stringify(inOrder(item))));
      next = page.LastEvaluatedKey;
    } while (next !== undefined);
    return items.toSorted().join('\n');
  }

  test('on DynamoDB, any input to any operation is answered by its schema or a problem, and a refusal changes no item', async () => {
    await fc.assert(
      fc.asyncProperty(calls, async (list) => {
        const table = `operations-${(tables += 1)}`;
        await createTable({ tableName: table, client });
        const { endpoint, region } = engine;
        const opened = await requestServer(
          { parseLimitsFile: parseSentFile },
          undefined,
          dynamodb({ table, endpoint, region }),
        );
        await expectAnswers(opened, list, () => itemsOf(table), new Map());
        await opened.limiter.close();
      }),
      { numRuns: runs(80) },
    );
  });
});

/**
 * The id and the number of the last write. A lease that has ended is found by a conditional write of its bucket, which
 * changes these two and nothing else; its answer is 409.
 */
const MARKS_OF_A_WRITE = new Set(['w', 'wc']);

function inOrder(item: Readonly<Record<string, AttributeValue>>): unknown {
  const fields = Object.entries(item).filter(([name]) => !MARKS_OF_A_WRITE.has(name));
  return fields.toSorted(([a], [b]) => (a < b ? -1 : 1));
}
