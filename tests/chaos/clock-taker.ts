/** A process whose machine's clock is wrong, and which takes as much as it gets. */
import { dynamodb } from '../../src/backends/dynamodb/index.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';

export interface ClockTakerOrder {
  readonly endpoint: string;
  readonly region: string;
  readonly table: string;
  readonly namespace: string;
  readonly limit: string;
  /** How wrong the machine's clock is. */
  readonly skewMs: number;
  /** Whether the limiter takes that clock as it is. */
  readonly trustsClock: boolean;
}

/** Nothing, when it is ready; then, for each order to ask so many times, what became of it, by the right clock. */
export interface ClockTakerNews {
  /** When each grant was asked for. */
  readonly grants: readonly number[];
  /** When each denial was asked for, and when it came. */
  readonly denials: readonly (readonly [askedMs: number, toldMs: number])[];
}

/** How many asks run at once, and how soon a denied one is repeated. */
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
  // The very time that this machine has, but passed in.
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
