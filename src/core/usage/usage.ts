import { add, type Int } from '../int.js';
import type { EpochMs } from '../units.js';

/** Windows begin and end by UTC. */
export type UsageWindow = 'hourly' | 'daily' | 'monthly';

export const USAGE_WINDOWS: readonly UsageWindow[] = ['hourly', 'daily', 'monthly'];

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The instant at which the window that contains `atMs` began. */
export function windowStart(window: UsageWindow, atMs: EpochMs): EpochMs {
  if (window === 'hourly') return Math.floor(atMs / HOUR_MS) * HOUR_MS;
  if (window === 'daily') return Math.floor(atMs / DAY_MS) * DAY_MS;
  const date = new Date(atMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), 1);
}

/** The instant at which the window that began at `startMs` ends, and the next begins. */
export function windowEnd(window: UsageWindow, startMs: EpochMs): EpochMs {
  if (window === 'hourly') return startMs + HOUR_MS;
  if (window === 'daily') return startMs + DAY_MS;
  const date = new Date(startMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
}

/** How long queries return a usage record: hourly records 90 days, the others 400 days. */
export function usageLifeMs(window: UsageWindow): number {
  return (window === 'hourly' ? 90 : 400) * DAY_MS;
}

/** How long queries return an audit record. */
export const AUDIT_LIFE_MS = 90 * DAY_MS;

/** What counts as usage: net consumption per rate limit, grants, and leases that expired. */
export interface UsageCounts {
  readonly consumedMilli: ReadonlyMap<string, Int>;
  readonly acquires: number;
  readonly expired: number;
}

export const NO_USAGE: UsageCounts = { consumedMilli: new Map(), acquires: 0, expired: 0 };

export function addUsage(a: UsageCounts, b: UsageCounts): UsageCounts {
  const consumedMilli = new Map(a.consumedMilli);
  for (const [name, milli] of b.consumedMilli) consumedMilli.set(name, add(consumedMilli.get(name) ?? 0, milli));
  return { consumedMilli, acquires: a.acquires + b.acquires, expired: a.expired + b.expired };
}
