import { availableParallelism, loadavg } from 'node:os';
import { findEngine } from 'headgate/testing/dynamodb';
import { dynamodbRows } from './dynamodb.js';
import { embeddedRows } from './embedded.js';
import { isMissed, type Row, table } from './table.js';

/** `npm run bench -- dynamodb`: only that part. */
const only = process.argv[2];

/** Prints the rows as a table, once the last is there; until then, which ones are. */
async function show(title: string, rows: AsyncIterable<Row>): Promise<void> {
  const known: Row[] = [];
  for await (const row of rows) {
    known.push(row);
    process.stderr.write(`${row.name}: ${row.ratio.toFixed(2)}x\n`);
  }
  console.log(`\n${title}\n${table(known)}`);
  if (known.some(isMissed)) process.exitCode = 1;
}

if (only !== 'dynamodb') {
  const title = `Headgate against rate-limiter-flexible, Node ${process.version}; ratio > 1: Headgate needs less`;
  await show(title, embeddedRows());
}
if (only !== 'embedded') {
  const engine = findEngine('dynoxide');
  if (engine.status === 'unavailable') console.log(`\nDynamoDB: skipped, ${engine.reason}`);
  else {
    const where = 'dynoxide, which shares the processors with this process';
    await show(`Headgate on DynamoDB (${where}); ratio: headgate / peer`, dynamodbRows());
  }
}
const loads = loadavg().map((load) => load.toFixed(1));
console.log(`\nLoad average ${loads.join(' ')} on ${availableParallelism()} processors`);
