import { createProgram } from '../../src/cli/run/program.js';
import { buildShardKey, keyItem } from '../../src/backends/dynamodb/table/keys.js';
import { number } from '../../src/backends/dynamodb/table/attributes.js';
import { deadlineIn } from '../../src/machine-time.js';
import { openTransport } from '../../src/backends/dynamodb/client/open-transport.js';
import type { Table } from '../../src/backends/dynamodb/client/requests.js';
import type { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { reconcile } from '../../src/backends/dynamodb/reconciler/loop.js';
import { processBatch } from '../../src/backends/dynamodb/stream/process-batch.js';
import { rebuildUsage } from '../../src/backends/dynamodb/stream/rebuild/rebuild.js';
import { SplitAhead } from '../../src/backends/dynamodb/stream/split-ahead.js';
import type { RecordedRequest } from '../../src/testing/dynamodb/index.js';
import { LIMITS, OPERATIONS, putUsage, type Stage } from '../support/dynamodb/permissions.js';
import type { DynamoWorld } from '../support/dynamodb/world.js';
import { fakeTerminal } from '../support/cli/fake-terminal.js';
import { batchTools, openStream, readRecords, workOff } from '../support/stream/world.js';

/** One operation, its namespace, and the requests that it sent to DynamoDB. */
export interface Flow {
  readonly name: string;
  readonly ns: string;
  readonly requests: readonly RecordedRequest[];
}

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;

/** Read-only commands, with arguments for existing objects. */
const LOOKS = [
  'acquire user-1 gpt-4 -c rpd=1 --dry-run',
  'audit list',
  'audit list --last 3',
  'bucket list --entity user-1',
  'bucket show user-1 gpt-4',
  'capacity gpt-4',
  'check',
  'config list',
  'config show --effective user-1 gpt-4',
  'entity children proj-1',
  'entity list --all',
  'entity show user-1 --all-resources',
  'leases list',
  'leases list user-1 gpt-4',
  'limits export',
  'namespace list',
  'namespace orphans',
  'namespace show default',
  'resource entities gpt-4',
  'resource list',
  'resource show gpt-4',
  'system show',
  'usage list gpt-4',
  'usage plot gpt-4',
  'usage summary gpt-4',
];

export const LOOKS_BY_COMMAND = 'commands that only look';

/**
 * Maintenance: the stream, sweeps and repairs. It needs the policy for operators, because it visits every namespace.
 */
const UPKEEP: Readonly<Record<string, (stage: Stage) => Promise<unknown>>> = {
  'the function on the stream': async ({ world, space, limiter }) => {
    const ask = { entityId: 'user-1', resource: 'gpt-4', consume: { rpd: 1 } };
    for (let second = 0; second < 5; second++) {
      for (let taken = 0; taken < 5; taken++) await limiter.acquire(ask);
      await space.clock.advance(SECOND_MS);
    }
    const stream = await openStream(world);
    const records = await readRecords(stream);
    stream.close?.();
    world.proxy.requests.clear();
    const table = throughProxy(world);
    const splitAhead = new SplitAhead(table, { paceAbove: 1, splitAbove: 2 });
    const result = await processBatch(
      batchTools(table, { splitAhead, now: () => space.clock.now() }),
      stream.label,
      records,
    );
    if (result.splits === 0) throw new Error('nothing was split');
  },
  'the reconciler': async ({ world, space }) => {
    await leaveBehind({ world, space });
    const { endpoint, region } = addressOf(world);
    world.proxy.requests.clear();
    const report = await reconcile({ table: world.table.name, endpoint, region, clock: space.clock });
    if (report.merged === 0 || report.reclaimed === 0)
      throw new Error(`too little was found: ${JSON.stringify(report)}`);
  },
  '`headgate worker`': async ({ world }) => workOff(world, addressOf(world)),
  '`headgate usage rebuild`': async ({ world, space: { namespace } }) =>
    rebuildUsage({ table: world.table.name, ...addressOf(world), namespace, entityId: 'user-1', resource: 'gpt-4' }),
};

export const FUNCTION_FLOWS = { stream: 'the function on the stream', reconciler: 'the reconciler' } as const;

/** Every operation, each in its own namespace. Maintenance comes first, because it visits all records. */
export async function recordFlows(world: DynamoWorld): Promise<readonly Flow[]> {
  const flows: Flow[] = [];
  for (const [name, use] of Object.entries({ ...UPKEEP, ...OPERATIONS, [LOOKS_BY_COMMAND]: look })) {
    const stage = await makeStage(world);
    world.proxy.requests.clear();

    await use(stage);

    flows.push({ name, ns: stage.space.ns, requests: [...world.proxy.requests.recorded] });
  }
  return flows;
}

async function makeStage(world: DynamoWorld): Promise<Stage> {
  const space = await world.space();
  const limiter = await space.open({ limits: LIMITS });
  await limiter.entities.create({ id: 'proj-1' });
  await limiter.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true });
  await limiter.config.setResource('gpt-4', { limits: LIMITS });
  await limiter.acquire({ entityId: 'user-1', resource: 'gpt-4', consume: { rpd: 1, slots: 1 } });
  await putUsage(world, space);
  return { world, space, limiter };
}

async function look({ world, space: { namespace } }: Stage): Promise<void> {
  const { endpoint, region } = addressOf(world);
  const store = `dynamodb://${world.table.name}?region=${region}&endpoint=${endpoint}`;
  for (const line of LOOKS) {
    const terminal = fakeTerminal();
    const args = [...line.split(' '), '--store', store, '--namespace', namespace, '--json'];
    await createProgram(terminal, '0.0.0').parseAsync(args, { from: 'user' });
    if (terminal.outText() === '') throw new Error(`${line} printed nothing: ${terminal.errText()}`);
  }
}

const SENSITIVE = { paceAbove: 5, splitAbove: 10 };

/**
 * Creates work for a sweep: an expired holder, two shards without writes for two hours, and two shards in use with a
 * wrong number of free slots.
 */
async function leaveBehind({ world, space }: Pick<Stage, 'world' | 'space'>): Promise<void> {
  const limiter = await space.open({ limits: LIMITS }, { pressure: SENSITIVE });
  await limiter.acquire({ entityId: 'left', resource: 'gpt-4', consume: { slots: 1 } });
  await useUntilSplit(space, limiter, 'left');
  space.clock.set(space.clock.now() + 2 * HOUR_MS);
  await useUntilSplit(space, limiter, 'crooked');
  const Key = keyItem(buildShardKey(space.ns, { entityId: 'crooked', resource: 'gpt-4', shard: 1 }));
  const input = { TableName: world.table.name, Key, UpdateExpression: 'ADD b_slots_tk :two' };
  const values = { ExpressionAttributeValues: { ':two': number(-2_000) } };
  await world.table.transport.send('UpdateItem', { ...input, ...values }, deadlineIn(HOUR_MS));
}

async function useUntilSplit(space: Stage['space'], limiter: RateLimiter, entityId: string): Promise<void> {
  const isSplit = async () => (await space.shards(entityId, 'gpt-4')).length === 2;
  for (let write = 0; !(await isSplit()); write++) {
    if (write === 200) throw new Error(`the bucket of ${entityId} was not split`);
    await limiter.acquire({ entityId, resource: 'gpt-4', consume: { rpd: 1 } });
    space.clock.set(space.clock.now() + 50);
  }
}

function addressOf({ proxy, engine }: DynamoWorld) {
  return { endpoint: proxy.endpoint, region: engine.region };
}

function throughProxy(world: DynamoWorld): Table {
  return { ...world.table, transport: openTransport(addressOf(world)) };
}
