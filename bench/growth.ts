import { findEngine } from 'headgate/testing/dynamodb';
import { RateLimiter } from '../src/limiter/rate-limiter.js';
import { cachePoints, lookUpBucket, lookUpConfig } from './growth-caches.js';
import { growthOnDynamoDB } from './growth-dynamodb.js';
import { printFileSeries } from './growth-file.js';
import {
  acquirer,
  bucketCounts,
  holderPoints,
  keysOf,
  levelPoints,
  limitPoints,
  type Open,
  plenty,
} from './growth-points.js';
import { heapGrowth } from './heap.js';
import { type Point, printSeries, printTableHead } from './series.js';

const inMemory: Open = async (limits) => RateLimiter.open('memory:', { limits });

/** How the CPU of an acquire, and the size of a bucket, grow with what is stored. */
export async function growth(): Promise<void> {
  printTableHead();
  await printSeries('memory, limits', await limitPoints(inMemory));
  await printSeries('memory, levels', await levelPoints(inMemory));
  await printSeries('memory, holders', await holderPoints(inMemory));
  await printSeries('memory, buckets', await memoryPoints());
  await printFileSeries();
  await printSeries('config cache alone, entities', await cachePoints(lookUpConfig));
  await printSeries('DynamoDB image cache alone, buckets', await cachePoints(lookUpBucket));
  const engine = findEngine('dynoxide');
  if (engine.status === 'unavailable') console.log(`\nDynamoDB: skipped, ${engine.reason}`);
  else await growthOnDynamoDB();
}

async function memoryPoints(): Promise<readonly Point[]> {
  const points: Point[] = [];
  for (const count of bucketCounts()) {
    const limiter = await RateLimiter.open('memory:', { limits: [plenty('rpd')] });
    const call = acquirer(limiter, { rpd: 1 }, keysOf(count));
    const { bytes } = await heapGrowth(async () => {
      for (let bucket = 0; bucket < count; bucket++) await call();
      return limiter;
    });
    points.push({ label: String(count), call, bytes: bytes / count });
  }
  return points;
}
