import type { DynamoDB } from '@aws-sdk/client-dynamodb';
import { type Engine, startEngine } from 'headgate/testing/dynamodb';
import {
  bareBucket,
  bareCounter,
  bareDenied,
  clientOf,
  createTables,
  flexible,
  headgate,
  headgateDenied,
  leanReach,
  leanWrites,
} from './dynamodb-peers.js';
import { bareSockets } from './bare-sockets.js';
import { costRows } from './costs.js';
import { compare } from './interleave.js';
import { callEach, compareLatency, compareThroughput, type Load } from './load.js';
import { QuickStore } from './quick-store.js';
import type { Contender } from './race.js';
import { sized } from './settings.js';
import type { Row } from './table.js';
import { withWriteMeter } from './write-units.js';

const HOT = ['hot'];
/** More than one bucket, because the writes of one caller to one bucket would be paced, and this measures latency. */
const FEW = Array.from({ length: 16 }, (_, index) => `few-${index}`);
const SPREAD = Array.from({ length: sized(10_000) }, (_, index) => `user-${index}`);
const SOME = SPREAD.slice(0, 500);
const AT_ONCE = 256;

/** Measures on a real engine over HTTP, row by row, because it takes long. The peers use the client of the AWS SDK. */
export async function* dynamodbRows(): AsyncGenerator<Row> {
  await using engine = await startEngine('dynoxide');
  const client = clientOf(engine, engine.endpoint);
  const lean = leanReach(engine);
  try {
    await createTables(client);
    const bucket = await bareBucket(client, [...HOT, ...FEW, ...SPREAD]);
    const counter = await bareCounter(client, [...FEW, ...SPREAD]);
    const peer = await flexible(client, [...HOT, ...SPREAD]);
    // A separate limiter for each load, so that the entries of one load do not evict those of the other.
    const [spread, spreadBySdk] = [await headgate(lean, SPREAD), await headgate({ client }, SPREAD)];
    // The first pass creates the buckets. This one warms up the path of existing buckets as much as that of the SDK.
    for (const contender of [spread, spreadBySdk]) await callEach(SPREAD, AT_ONCE, contender);
    const onMany = { keys: SPREAD, concurrency: AT_ONCE, roundMs: 1_000 };
    const manyName = `${AT_ONCE} callers on 10,000 buckets`;
    const onBuckets = { name: `acquire / bare UpdateItem, ${manyName}`, goal: 2.2 };
    yield* costRows(onBuckets, onMany, [spread, bucket], engine.pid);
    for (const [name, ours, other, goal] of [
      [`acquire / bare UpdateItem, ${manyName}, through the SDK`, spreadBySdk, bucket, { goal: 0.85 }],
      [`acquire / bare UpdateItem, ${manyName}, of a mere counter`, spread, counter, {}],
      [`acquire / RateLimiterDynamo, ${manyName}`, spread, peer, { goal: 1 }],
    ] as const) {
      yield { name, unit: 'ops/s', ...goal, ...(await compareThroughput(onMany, ours, other)) };
    }
    const byLean = leanWrites(lean);
    const clients = { name: `UpdateItem of the lean transport / of the SDK, ${manyName}` };
    yield* costRows(clients, onMany, [byLean.bucket, bucket], engine.pid);
    yield* costRows({ name: `${clients.name}, of a mere counter` }, onMany, [byLean.counter, counter], engine.pid);
    byLean.close();
    {
      await using sockets = await bareSockets(engine.endpoint, SPREAD);
      const most = await compareThroughput(onMany, sockets.contender, bucket);
      yield { name: `the most that dynoxide answers / bare UpdateItem, ${manyName}`, unit: 'ops/s', ...most };
    }
    yield await quickStoreRow(engine, onMany, manyName);
    const [few, fewBySdk] = [await headgate(lean, FEW), await headgate({ client }, FEW)];
    const one = { name: 'latency of an acquire / bare UpdateItem, 1 caller', unit: 'us', goalIs: 'most' } as const;
    yield { ...one, goal: 0.6, ...(await compareLatency(FEW, few, bucket)) };
    const bySdk = await compareLatency(FEW, fewBySdk, bucket);
    yield { ...one, name: `${one.name}, through the SDK`, goal: 1.2, ...bySdk };
    yield { ...one, name: `${one.name}, of a mere counter`, ...(await compareLatency(FEW, few, counter)) };
    const denied = [await headgateDenied(client), bareDenied(client)] as const;
    const refusals = await compareThroughput({ keys: ['denied'], concurrency: 1, roundMs: 500 }, ...denied);
    yield { name: 'denied / refused UpdateItem, 1 caller', unit: 'ops/s', goal: 100, ...refusals };

    const hot = await headgate(lean, HOT);
    const onHot = { keys: HOT, concurrency: AT_ONCE, roundMs: 1_000 };
    const hotName = `${AT_ONCE} callers on one bucket`;
    const againstOne = await compareThroughput(onHot, hot, bucket);
    yield { name: `acquire / bare UpdateItem, ${hotName}`, unit: 'ops/s', goal: 50, ...againstOne };
    const againstPeer = await compareThroughput(onHot, hot, peer);
    yield { name: `acquire / RateLimiterDynamo, ${hotName}`, unit: 'ops/s', goal: 1, ...againstPeer };
    yield await writeUnitsRow(engine, HOT, 'one bucket');
    yield await writeUnitsRow(engine, SOME, '500 buckets');
  } finally {
    client.destroy();
  }
}

/** What the client can do: dynoxide needs more CPU for a write than Headgate, so that it limits the rows above. */
async function quickStoreRow(engine: Engine, load: Load, loadName: string): Promise<Row> {
  await using store = await QuickStore.start(engine.endpoint);
  const client = clientOf(engine, store.endpoint);
  const bucket = await bareBucket(client, SPREAD);
  const ours = await headgate({ ...leanReach(engine), endpoint: store.endpoint }, SPREAD);
  for (const contender of [ours, bucket]) await callEach(SPREAD, AT_ONCE, contender);
  const both = await compareThroughput(load, ours, bucket);
  client.destroy();
  return { name: `acquire / bare UpdateItem, ${loadName}, of a quick store`, unit: 'ops/s', goal: 2.2, ...both };
}

async function writeUnitsRow(engine: Engine, keys: readonly string[], where: string): Promise<Row> {
  const units = await withWriteMeter(engine, keys, headgateBySdk, (headgateUnits) =>
    withWriteMeter(engine, keys, flexible, (peerUnits) => compare(headgateUnits, peerUnits)),
  );
  const name = `write units / RateLimiterDynamo, ${AT_ONCE} callers on ${where}`;
  return { name, unit: 'WCU/op', goal: 0.5, goalIs: 'most', ...units };
}

async function headgateBySdk(client: DynamoDB, keys: readonly string[]): Promise<Contender> {
  return headgate({ client }, keys);
}
