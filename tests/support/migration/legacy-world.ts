import {
  BatchWriteItemCommand,
  CreateTableCommand,
  DynamoDBClient,
  ScanCommand,
  UpdateTimeToLiveCommand,
  waitUntilTableExists,
  type WriteRequest,
} from '@aws-sdk/client-dynamodb';
import { tableDefinition } from '../../../src/backends/dynamodb/table/table-definition.js';
import { sdkTransport } from '../../../src/backends/dynamodb/client/sdk-transport.js';
import type { Item } from '../../../src/backends/dynamodb/client/transport.js';
import type { Table } from '../../../src/backends/dynamodb/client/requests.js';
import { type Engine, startEngine } from '../../../src/testing/dynamodb/index.js';

const AT_ONCE = 8;

/** An engine with tables of published layouts. */
export class LegacyWorld {
  readonly engine: Engine;
  readonly client: DynamoDBClient;
  #tables = 0;

  private constructor(engine: Engine) {
    this.engine = engine;
    const { endpoint, region, credentials } = engine;
    process.env['AWS_ACCESS_KEY_ID'] = credentials.accessKeyId;
    process.env['AWS_SECRET_ACCESS_KEY'] = credentials.secretAccessKey;
    this.client = new DynamoDBClient({ endpoint, region, credentials });
  }

  static async start(): Promise<LegacyWorld> {
    return new LegacyWorld(await startEngine());
  }

  async stop(): Promise<void> {
    this.client.destroy();
    await this.engine.stop();
  }

  get reach(): { readonly endpoint: string; readonly region: string } {
    const { endpoint, region } = this.engine;
    return { endpoint, region };
  }

  /**
   * A table with these items. It has a stream only if requested, because each record of a stream slows the engine down.
   */
  async table(items: readonly Item[], { stream = false } = {}): Promise<Table> {
    const name = `legacy-${(this.#tables += 1)}`;
    const definition = tableDefinition(name);
    if (!stream) delete definition.StreamSpecification;
    await this.client.send(new CreateTableCommand(definition));
    const patience = { client: this.client, minDelay: 1, maxDelay: 1, maxWaitTime: 20 };
    await waitUntilTableExists(patience, { TableName: name });
    await this.put(name, items);
    return { name, transport: sdkTransport({ client: this.client }), random: Math.random };
  }

  async enableTtl(name: string): Promise<void> {
    const TimeToLiveSpecification = { AttributeName: 'ttl', Enabled: true };
    await this.client.send(new UpdateTimeToLiveCommand({ TableName: name, TimeToLiveSpecification }));
  }

  async put(name: string, items: readonly Item[]): Promise<void> {
    const batches: WriteRequest[][] = [];
    for (let at = 0; at < items.length; at += 25) {
      batches.push(items.slice(at, at + 25).map((item) => ({ PutRequest: { Item: item } })));
    }
    const work = async (): Promise<void> => {
      for (let batch = batches.pop(); batch !== undefined; batch = batches.pop()) {
        const { UnprocessedItems = {} } = await this.client.send(
          new BatchWriteItemCommand({ RequestItems: { [name]: batch } }),
        );
        const left = UnprocessedItems[name] ?? [];
        if (left.length > 0) batches.push(left);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  }

  /** Every item, in the order of its keys. */
  async dump(name: string): Promise<readonly Item[]> {
    const items: Item[] = [];
    for (let start: Item | undefined; ;) {
      const page = await this.client.send(
        new ScanCommand({ TableName: name, ConsistentRead: true, ...(start && { ExclusiveStartKey: start }) }),
      );
      items.push(...(page.Items ?? []));
      start = page.LastEvaluatedKey;
      if (start === undefined) return items.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
    }
  }
}

export function keyOf(item: Item): string {
  return `${item['PK']?.S ?? ''} ${item['SK']?.S ?? ''}`;
}
