/** Migrates a table, and kills itself at the n-th request of a phase: `table endpoint region migration phase n`. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { runMigrations } from '../../../src/backends/dynamodb/migrations/run.js';
import type { Item } from '../../../src/backends/dynamodb/client/transport.js';

const [tableName = '', endpoint = '', region = '', migration = '', phase = '', killAt = '0'] = process.argv.slice(2);
const client = new DynamoDBClient({ endpoint, region, maxAttempts: 1 });
let current = '';
let requests = 0;

/** The phase of a migration state that is read or written. */
const notePhase = (item: Item | undefined): void => {
  if (item?.['PK']?.S !== `_/MIGRATION#${migration}` || item['state']?.S === undefined) return;
  current = (JSON.parse(item['state'].S) as { phase: string }).phase;
};

client.middlewareStack.add(
  (next) => async (request) => {
    notePhase((request.input as { Item?: Item }).Item);
    if (current === phase) requests += 1;
    const isKilled = requests === Number(killAt);
    // Before an even request is sent, or after the answer of an odd one has arrived and before it is read.
    if (isKilled && requests % 2 === 0) process.kill(process.pid, 'SIGKILL');
    const answer = await next(request);
    if (isKilled) process.kill(process.pid, 'SIGKILL');
    notePhase((answer.output as { Item?: Item }).Item);
    return answer;
  },
  { step: 'initialize' },
);
await runMigrations({ tableName, client });
client.destroy();
process.disconnect?.();
