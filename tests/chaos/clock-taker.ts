/** A process on a machine with a wrong clock, which takes as much as it gets. */
import { dynamodb } from '../../src/backends/dynamodb/index.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';

export interface ClockTakerOrder {
  readonly endpoint: string;
  readonly region: string;
  readonly table: string;
  readonly namespace: string;
  readonly limit: string;
  /** The error of the machine's clock. */
  readonly skewMs: number;
  /** Whether the limiter uses that clock without a correction. */
  readonly trustsClock: boolean;
}

/** An empty message when the process is ready. Then, for each order, the outcome of its asks, by the right clock. */
export interface ClockTakerNews {
  /** The time of each ask that was granted. */
  readonly grants: readonly number[];
  /** The time of each ask that was denied, and the time of its answer. */
  readonly denials: readonly (readonly [askedMs: number, toldMs: number])[];
}

/** Concurrent asks, and the pause before a denied ask is repeated. */
const AT_ONCE = 8;
const ASK_AGAIN_MS = 10;

const order = JSON.parse(process.argv[2] ?? '{}') as ClockTakerOrder;
const rightNow = Date.now;
Date.now = () => rightNow() + order.skewMs;

const { endpoint, region, table, namespace } = order;
const limit = Limit.parse(order.limit);
const limiter = await RateLimiter.open(dynamodb({ table, endpoint, region }), {
  namespace,
  limits: [limit],
  // The same time as the machine's clock, but passed in, so that the limiter does not correct it.
  ...(order.trustsClock ? { clock: { now: () => Date.now() } } : {}),
  timeouts: { callMs: 20_000, acquireMs: 20_000 },
});

process.on('message', (asks) => void take(Number(asks)).then(tell));
tell({ grants: [], denials: [] });

function tell(news: ClockTakerNews): void {
  process.send?.(news);
}

async function take(asks: number): Promise<ClockTakerNews> {
  const news = { grants: [] as number[], denials: [] as [number, number][] };
  let left = asks;
  const work = async (): Promise<void> => {
    while (left-- > 0) {
      const askedMs = rightNow();
      const { granted } = await limiter.tryAcquire({ entityId: 'pot', resource: 'r', consume: { [limit.name]: 1 } });
      if (granted) news.grants.push(askedMs);
      else {
        news.denials.push([askedMs, rightNow()]);
        await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return news;
}
