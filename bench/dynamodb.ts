import { startEngine } from 'headgate/testing/dynamodb';
import {
  bareBucket,
  bareCounter,
  bareDenied,
  clientOf,
  createTables,
  flexible,
  headgate,
  headgateDenied,
} from './dynamodb-peers.js';
import { callEach, compareLatency, compareThroughput } from './load.js';
import type { Row } from './table.js';
import { writeUnitsPerDecision } from './write-units.js';

const HOT = ['hot'];
/** More than one bucket, because the writes of one caller to one bucket would be paced, and this measures latency. */
const FEW = Array.from({ length: 16 }, (_, index) => `few-${index}`);
const SPREAD = Array.from({ length: 10_000 }, (_, index) => `user-${index}`);
const SOME = SPREAD.slice(0, 500);
const AT_ONCE = 256;

/** Measures on a real engine over HTTP, row by row, because it takes long. */
export async function* dynamodbRows(): AsyncGenerator<Row> {
  await using engine = await startEngine('dynoxide');
  const client = clientOf(engine, engine.endpoint);
  try {
    await createTables(client);
    const bucket = await bareBucket(client, [...HOT, ...FEW, ...SPREAD]);
    const counter = await bareCounter(client, [...FEW, ...SPREAD]);
    const peer = await flexible(client, [...HOT, ...SPREAD]);
    // A separate limiter for each load, so that the entries of one load do not evict those of the other.
    const spread = await headgate({ client }, SPREAD);
    // The first pass creates the buckets. This one warms up the path of existing buckets as much as that of the SDK.
    await callEach(SPREAD, AT_ONCE, spread);
    const onMany = { keys: SPREAD, concurrency: AT_ONCE, roundMs: 1_000 };
    const manyName = `${AT_ONCE} callers on 10,000`;
    for (const [name, other, goal] of [
      [`acquire / bare UpdateItem, ${manyName}`, bucket, { goal: 0.85 }],
      [`acquire / bare UpdateItem, ${manyName}, of a mere counter`, counter, {}],
      [`acquire / RateLimiterDynamo, ${manyName}`, peer, { goal: 1 }],
    ] as const) {
      yield { name, unit: 'ops/s', ...goal, ...(await compareThroughput(onMany, spread, other)) };
    }

    const few = await headgate({ client }, FEW);
    const one = { name: 'acquire / bare UpdateItem, 1 caller', unit: 'us' };
    yield { ...one, goal: 1.2, goalIs: 'most', ...(await compareLatency(FEW, few, bucket)) };
    yield { ...one, name: `${one.name}, of a mere counter`, ...(await compareLatency(FEW, few, counter)) };
    const denied = [await headgateDenied(client), bareDenied(client)] as const;
    const refusals = await compareThroughput({ keys: ['denied'], concurrency: 1, roundMs: 500 }, ...denied);
    yield { name: 'denied / refused UpdateItem, 1 caller', unit: 'ops/s', goal: 100, ...refusals };

    const hot = await headgate({ client }, HOT);
    const onHot = { keys: HOT, concurrency: AT_ONCE, roundMs: 2_000 };
    const hotName = `${AT_ONCE} callers on one bucket`;
    const againstOne = await compareThroughput(onHot, hot, bucket);
    yield { name: `acquire / bare UpdateItem, ${hotName}`, unit: 'ops/s', goal: 30, ...againstOne };
    const againstPeer = await compareThroughput(onHot, hot, peer);
    yield { name: `acquire / RateLimiterDynamo, ${hotName}`, unit: 'ops/s', goal: 1, ...againstPeer };
    for (const [keys, where] of [[HOT, 'one bucket'] as const, [SOME, '500 buckets'] as const]) {
      const ours = await writeUnitsPerDecision(engine, keys, async (proxied, all) =>
        headgate({ client: proxied }, all),
      );
      const theirs = await writeUnitsPerDecision(engine, keys, flexible);
      const name = `write units, ${AT_ONCE} callers on ${where}`;
      yield { name, unit: 'WCU/op', goal: 0.5, goalIs: 'most', ours, theirs, ratio: ours / theirs };
    }
  } finally {
    client.destroy();
  }
}
