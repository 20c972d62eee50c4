import { findEngine, startEngine } from 'headgate/testing/dynamodb';
import {
  bareDenied,
  bareUpdate,
  clientOf,
  createTables,
  flexible,
  headgate,
  headgateDenied,
} from './dynamodb-peers.js';
import { compareLatency, compareThroughput } from './load.js';
import type { Row } from './table.js';
import { writeUnitsPerDecision } from './write-units.js';

const HOT = ['hot'];
const SPREAD = Array.from({ length: 10_000 }, (_, index) => `user-${index}`);
const SOME = SPREAD.slice(0, 500);
const AT_ONCE = 256;

/** On a real engine over HTTP. A reason instead, if there is none on this machine. */
export async function dynamodbRows(): Promise<readonly Row[] | string> {
  const found = findEngine('dynoxide');
  if (found.status === 'unavailable') return found.reason;
  await using engine = await startEngine('dynoxide');
  const client = clientOf(engine, engine.endpoint);
  try {
    await createTables(client);
    const rows: Row[] = [];
    const bare = await bareUpdate(client, [...HOT, ...SPREAD]);
    const peer = await flexible(client, [...HOT, ...SPREAD]);
    // A limiter of its own for each: what one remembers must not crowd out what the other does.
    const hot = await headgate(client, HOT);
    const one = await compareLatency('hot', hot, bare);
    rows.push({ name: 'acquire / bare UpdateItem, 1 caller', unit: 'us', goal: 1.2, goalIs: 'most', ...one });
    const denied = [await headgateDenied(client), bareDenied(client)] as const;
    const refusals = await compareThroughput({ keys: ['denied'], concurrency: 1 }, ...denied);
    rows.push({ name: 'denied / bare UpdateItem, 1 caller', unit: 'ops/s', goal: 100, ...refusals });
    for (const [keys, where, ours] of [
      [HOT, 'one bucket', hot],
      [SPREAD, '10,000 buckets', await headgate(client, SPREAD)],
    ] as const) {
      const load = { keys, concurrency: AT_ONCE };
      const goal = keys === HOT ? 30 : 0.85;
      const name = `${AT_ONCE} callers on ${where}`;
      const againstBare = await compareThroughput(load, ours, bare);
      rows.push({ name: `acquire / bare UpdateItem, ${name}`, unit: 'ops/s', goal, ...againstBare });
      const againstPeer = await compareThroughput(load, ours, peer);
      rows.push({ name: `acquire / RateLimiterDynamo, ${name}`, unit: 'ops/s', goal: 1, ...againstPeer });
    }
    for (const [keys, where] of [[HOT, 'one bucket'] as const, [SOME, '500 buckets'] as const]) {
      const ours = await writeUnitsPerDecision(engine, keys, headgate);
      const theirs = await writeUnitsPerDecision(engine, keys, flexible);
      const name = `write units, ${AT_ONCE} callers on ${where}`;
      rows.push({ name, unit: 'WCU/op', goal: 0.5, goalIs: 'most', ours, theirs, ratio: ours / theirs });
    }
    return rows;
  } finally {
    client.destroy();
  }
}
