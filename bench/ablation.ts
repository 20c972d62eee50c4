import type { UpdateItemInput } from '@aws-sdk/client-dynamodb';
import { startEngine } from 'headgate/testing/dynamodb';
import { openTransport } from '../src/backends/dynamodb/client/open-transport.js';
import type { Transport } from '../src/backends/dynamodb/client/transport.js';
import { deadlineIn } from '../src/machine-time.js';
import { type Cost, costOf } from './costs.js';
import { bareBucket, clientOf, createTables, headgate, leanReach, TABLE } from './dynamodb-peers.js';
import type { Contender } from './race.js';
import { PAIRS, sized } from './settings.js';
import { spreadOf } from './spread.js';
import { inColumns } from './table.js';

const PATIENCE_MS = 30_000;
const KEYS = Array.from({ length: sized(2_000) }, (_, index) => `part-${index}`);
const LOAD = { keys: KEYS, concurrency: 64, roundMs: 1_000 };

/** What an acquire of two rates sends for a bucket that exists: its conditions and its changes. */
interface Take {
  readonly conditions: Readonly<Record<string, string>>;
  readonly sets: Readonly<Record<string, string>>;
  readonly adds: Readonly<Record<string, string>>;
  readonly returns: UpdateItemInput['ReturnValues'];
}

const TAKE: Take = {
  conditions: {
    base: 'rf >= :one',
    id: 'w <> :id',
    pause: '(attribute_not_exists(pz) OR pz <= :one)',
    floors: 'b_rph_tk >= :one AND b_tph_tk >= :one',
  },
  sets: { id: 'w = :id', tokens: 'b_rph_tk = :tk, b_tph_tk = :tk' },
  adds: { writes: 'wc :one', acquires: 'ac :one', consumed: 'b_rph_tc :one, b_tph_tc :one' },
  returns: 'ALL_NEW',
};

const VALUES = { ':one': { N: '1' }, ':tk': { N: '1000000000' } };

function without(part: 'conditions' | 'sets' | 'adds', ...names: readonly string[]): Take {
  const left = Object.entries(TAKE[part]).filter(([name]) => !names.includes(name));
  return { ...TAKE, [part]: Object.fromEntries(left) };
}

/** The first one is what the others are compared with. */
const VARIANTS: Readonly<Record<string, Take>> = {
  'the whole take': TAKE,
  'without rf = :rf': without('conditions', 'base'),
  'without w <> :id': without('conditions', 'id'),
  'without the pause': without('conditions', 'pause'),
  'without the floors of both limits': without('conditions', 'floors'),
  'without any condition': without('conditions', 'base', 'id', 'pause', 'floors'),
  'without SET w': without('sets', 'id'),
  'without wc': without('adds', 'writes'),
  'without ac': without('adds', 'acquires'),
  'without tc of both limits': without('adds', 'consumed'),
  'with UPDATED_NEW instead of ALL_NEW': { ...TAKE, returns: 'UPDATED_NEW' },
  'with NONE instead of ALL_NEW': { ...TAKE, returns: 'NONE' },
  'a bare UpdateItem: two floors, two changes': {
    conditions: { floors: TAKE.conditions['floors'] ?? '' },
    sets: {},
    adds: { tokens: 'b_rph_tk :one, b_tph_tk :one' },
    returns: 'ALL_NEW',
  },
};

/** Prints how much CPU of the engine, and of this process, each part of a take costs. */
export async function showAblation(): Promise<void> {
  await using engine = await startEngine('dynoxide');
  const client = clientOf(engine, engine.endpoint);
  await createTables(client);
  await bareBucket(client, KEYS);
  client.destroy();
  const transport = openTransport(leanReach(engine));
  const contenders = Object.values(VARIANTS).map((take) => senderOf(transport, take));
  contenders.push(await headgate(leanReach(engine), KEYS));
  const rounds: Cost[][] = contenders.map(() => []);
  for (let round = 0; round <= PAIRS; round++) {
    for (const [at, contender] of contenders.entries()) {
      const cost = await costOf(LOAD, contender, engine.pid);
      // The first round only warms up.
      if (round > 0) rounds[at]?.push(cost);
    }
  }
  transport.close();
  const lines = [...Object.keys(VARIANTS), 'acquire and commit'].map((name, at) => [
    name,
    ...columnsOf(rounds[0] ?? [], rounds[at] ?? [], 'engineUs'),
    ...columnsOf(rounds[0] ?? [], rounds[at] ?? [], 'clientUs'),
  ]);
  console.log(inColumns([['', 'engine us', 'less', 'client us', 'less'], ...lines], new Set([0])));
}

/** The median, and how much less than the whole take it is, in the same round, with the quartiles. */
function columnsOf(whole: readonly Cost[], part: readonly Cost[], field: 'engineUs' | 'clientUs'): readonly string[] {
  const { median } = spreadOf(part.map((cost) => cost[field]));
  const less = spreadOf(part.map((cost, at) => (whole[at]?.[field] ?? Number.NaN) - cost[field]));
  return [
    median.toFixed(0),
    part === whole ? '' : `${less.median.toFixed(0)} (${less.low.toFixed(0)} to ${less.high.toFixed(0)})`,
  ];
}

/** Every write has another id, as those of Headgate. */
let writes = 0;

function senderOf(transport: Transport, take: Take): Contender {
  const input = inputOf(take);
  const text = JSON.stringify(input);
  const usesId = text.includes(':id');
  return async (key) => {
    const id = { ':id': { S: `0Q7q6XEGu${(writes += 1).toString(36).padStart(5, '0')}` } };
    const values = { ...input.ExpressionAttributeValues, ...(usesId ? id : {}) };
    const Key = { PK: { S: `bucket#${key}` }, SK: { S: '#STATE' } };
    await transport.send(
      'UpdateItem',
      { ...input, Key, ...(Object.keys(values).length > 0 ? { ExpressionAttributeValues: values } : {}) },
      deadlineIn(PATIENCE_MS),
    );
  };
}

/** An engine refuses values that no expression uses. */
function inputOf({ conditions, sets, adds, returns }: Take): Omit<UpdateItemInput, 'Key'> {
  const condition = Object.values(conditions).join(' AND ');
  const [set, add] = [Object.values(sets).join(', '), Object.values(adds).join(', ')];
  const update = [...(set === '' ? [] : [`SET ${set}`]), ...(add === '' ? [] : [`ADD ${add}`])].join(' ');
  const used = Object.entries(VALUES).filter(([name]) => `${condition} ${update}`.includes(name));
  return {
    TableName: TABLE,
    UpdateExpression: update,
    ...(condition === '' ? {} : { ConditionExpression: condition }),
    ExpressionAttributeValues: Object.fromEntries(used),
    ReturnValues: returns,
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  };
}
