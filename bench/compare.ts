import { findEngine } from 'headgate/testing/dynamodb';
import { showAblation } from './ablation.js';
import { takeFromBuckets } from './bucket-taker.js';
import { budgetRows } from './budgets.js';
import { clientRows } from './clients.js';
import { dynamodbRows } from './dynamodb.js';
import { embeddedRows } from './embedded.js';
import { takeFromFile } from './file-takers.js';
import { growth } from './growth.js';
import { httpRows } from './http.js';
import { askForBench } from './http-client.js';
import { serveForBench } from './http-server.js';
import { soakRows } from './http-soak.js';
import { showOwnCpu } from './own-cpu.js';
import { processRows } from './processes.js';
import { serveQuickStore } from './quick-store.js';
import { redisRows } from './redis.js';
import { showRivals } from './rivals.js';
import { runParts, sendRows } from './runs.js';
import { ALL, ARGUMENTS, RUNS } from './settings.js';
import { printRatio } from './spread.js';
import { startRows } from './start.js';
import { printTable, type Row } from './table.js';
import { zaeLimiterRows } from './zae-limiter.js';

const NODE = `Node ${process.version}`;

/** `npm run bench -- dynamodb` runs only that part. */
const PARTS: Readonly<Record<string, () => Promise<void>>> = {
  budgets: () => show(`Headgate against what it may take, ${NODE}; ratio: headgate / most`, budgetRows()),
  start: () => show(`The start of a process, ${NODE}; ratio: headgate / peer`, startRows()),
  embedded: () => show(`Headgate against rate-limiter-flexible, ${NODE}; ratio: peer / headgate`, embeddedRows()),
  clients: () => showOnDynamoDB('Requests without the AWS SDK', clientRows),
  dynamodb: () => showOnDynamoDB('Headgate on DynamoDB', dynamodbRows),
  processes: () => showOnDynamoDB('Many processes on one bucket', processRows),
  http: () => show(`The HTTP server, ${NODE}; ratio: headgate / peer, or headgate / most`, httpRows()),
  'http-soak': () => show(`A busy bucket behind the HTTP server, ${NODE}; ratio: headgate / goal`, soakRows()),
  rivals: showRivals,
  growth,
};

/** Parts that only `--all` or their name runs. */
const MORE_PARTS: typeof PARTS = {
  ablation: showAblation,
  'own-cpu': showOwnCpu,
  redis: () => showOnDynamoDB('Headgate against rate-limiter-flexible on Redis', redisRows),
  'zae-limiter': () => showOnDynamoDB('Headgate against zae-limiter', zaeLimiterRows),
};

/** What the processes do that a part starts. */
const CHILDREN: typeof PARTS = {
  'file-taker': () => takeFromFile(ARGUMENTS[1] ?? ''),
  'bucket-taker': async () => takeFromBuckets(),
  'http-client': async () => askForBench(),
  'http-server': () => serveForBench(ARGUMENTS[1] ?? ''),
  'quick-store': () => serveQuickStore(ARGUMENTS[1] ?? ''),
};

/** Prints each row when it is measured, and all rows as a table at the end. Rows of one run of several go to its parent. */
async function show(title: string, rows: AsyncIterable<Row> | Iterable<Row>): Promise<void> {
  const known: Row[] = [];
  for await (const row of rows) {
    known.push(row);
    process.stderr.write(`${row.name}: ${printRatio(row.ratio)}\n`);
  }
  if (RUNS > 1) sendRows({ title, rows: known });
  else printTable(title, known);
}

async function showOnDynamoDB(what: string, rows: () => AsyncIterable<Row> | Promise<Iterable<Row>>): Promise<void> {
  const engine = findEngine('dynoxide');
  const where = 'dynoxide, which shares the processors with this process';
  if (engine.status === 'unavailable') console.log(`${what}: skipped, ${engine.reason}`);
  else await show(`${what} (${where}); ratio: headgate / peer`, await rows());
}

process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] = 'true';
const known = { ...PARTS, ...MORE_PARTS, ...CHILDREN };
const [part] = ARGUMENTS;
const run = part === undefined ? undefined : known[part];
const isParent = part === undefined || (RUNS > 1 && process.send === undefined);
if (part !== undefined && run === undefined) {
  throw new RangeError(`Expected ${Object.keys({ ...PARTS, ...MORE_PARTS }).join(' or ')}, got ${part}`);
}
if (!isParent) await run?.();
else await runParts(part === undefined ? Object.keys(ALL ? { ...PARTS, ...MORE_PARTS } : PARTS) : [part]);
