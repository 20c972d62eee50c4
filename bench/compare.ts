import { spawnSync } from 'node:child_process';
import { availableParallelism, loadavg } from 'node:os';
import { findEngine } from 'headgate/testing/dynamodb';
import { budgetRows } from './budgets.js';
import { clientRows } from './clients.js';
import { dynamodbRows } from './dynamodb.js';
import { embeddedRows } from './embedded.js';
import { takeFromFile } from './file-takers.js';
import { showOwnCpu } from './own-cpu.js';
import { isMissed, type Row, table } from './table.js';

/** `npm run bench -- dynamodb` runs only that part. */
const PARTS = { budgets, embedded, clients, dynamodb };

/** Prints the name of each row when it is measured, and all rows as a table at the end. */
async function show(title: string, rows: AsyncIterable<Row>): Promise<void> {
  const known: Row[] = [];
  for await (const row of rows) {
    known.push(row);
    process.stderr.write(`${row.name}: ${row.ratio.toFixed(2)}x\n`);
  }
  const loads = loadavg().map((load) => load.toFixed(1));
  console.log(`\n${title}\n${table(known)}`);
  console.log(`Load average ${loads.join(' ')} on ${availableParallelism()} processors\n`);
  if (known.some(isMissed)) process.exitCode = 1;
}

async function budgets(): Promise<void> {
  await show(`Headgate against what it may take, Node ${process.version}; ratio: headgate / most`, budgetRows());
}

async function embedded(): Promise<void> {
  const title = `Headgate against rate-limiter-flexible, Node ${process.version}; ratio > 1: Headgate needs less`;
  await show(title, embeddedRows());
}

async function clients(): Promise<void> {
  await showOnDynamoDB('Requests without the AWS SDK', clientRows);
}

async function dynamodb(): Promise<void> {
  await showOnDynamoDB('Headgate on DynamoDB', dynamodbRows);
}

async function showOnDynamoDB(what: string, rows: () => AsyncIterable<Row>): Promise<void> {
  const engine = findEngine('dynoxide');
  const where = 'dynoxide, which shares the processors with this process';
  if (engine.status === 'unavailable') console.log(`${what}: skipped, ${engine.reason}`);
  else await show(`${what} (${where}); ratio: headgate / peer`, rows());
}

/** Runs each part in a separate process, so that optimisations for one part do not slow the other down. */
function runAll(): void {
  const env = { ...process.env, AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' };
  for (const part of Object.keys(PARTS)) {
    const args = [...process.execArgv, process.argv[1] ?? '', part];
    const { status } = spawnSync(process.execPath, args, { stdio: 'inherit', env });
    if (status !== 0) process.exitCode = 1;
  }
}

const part = process.argv[2];
if (part === undefined) runAll();
else if (part === 'budgets' || part === 'embedded' || part === 'clients' || part === 'dynamodb') await PARTS[part]();
else if (part === 'own-cpu') await showOwnCpu();
else if (part === 'file-taker') await takeFromFile(process.argv[3] ?? '');
else throw new RangeError(`Expected ${Object.keys(PARTS).join(' or ')}, got ${part}`);
