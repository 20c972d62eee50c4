/** Migrates a table, and dies with its n-th request: `table endpoint region n`. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { runMigrations } from '../../src/backends/dynamodb/migrations/run.js';

const [tableName = '', endpoint = '', region = '', dieAt = '0'] = process.argv.slice(2);
const client = new DynamoDBClient({ endpoint, region, maxAttempts: 1 });
let requests = 0;
client.middlewareStack.add(
  (next) => async (request) => {
    requests += 1;
    // Every other time when the request has been answered, and nobody here knows yet.
    const dies = requests === Number(dieAt);
    if (dies && requests % 2 === 0) process.kill(process.pid, 'SIGKILL');
    const answer = await next(request);
    if (dies) process.kill(process.pid, 'SIGKILL');
    return answer;
  },
  { step: 'finalizeRequest', priority: 'low' },
);
await runMigrations({ tableName, client });
client.destroy();
process.disconnect?.();
