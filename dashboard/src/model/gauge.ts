import type { LimitView, StoredPause } from '../api/types.js';
import { formatCount, formatDuration } from './format.js';
import { holdsSlots } from './limit-kind.js';

/** What the bar of one limit shows. Shares are of the capacity, from 0 to 1. */
export interface GaugeView {
  readonly name: string;
  readonly text: string;
  readonly usedShare: number;
  /** Tokens below zero; 0: none. */
  readonly debt: number;
  readonly debtShare: number;
  readonly level: 'calm' | 'high' | 'full' | 'unlimited';
  /** Where the part begins that each priority class must leave. */
  readonly reserves: readonly { readonly priority: string; readonly fromShare: number; readonly tokens: number }[];
  readonly isShadow: boolean;
  /** The numbers in words: also for screen readers. */
  readonly summary: string;
}

const HIGH_SHARE = 0.75;

/** `configured`: the limit with its options, which no bucket has. */
export function gaugeOf(limit: LimitView, available: number | null, configured: LimitView = limit): GaugeView {
  const { name, capacity } = limit;
  const isShadow = configured.shadow === true;
  const common = { name, text: configured.text, isShadow };
  if (capacity === null || available === null) {
    const calm = { usedShare: 0, debt: 0, debtShare: 0, reserves: [] } as const;
    return { ...common, ...calm, level: 'unlimited', summary: 'unlimited' };
  }
  const used = Math.max(0, capacity - Math.max(0, available));
  const debt = Math.max(0, -available);
  const usedShare = capacity === 0 ? 1 : Math.min(1, used / capacity);
  const fullInMs = timeUntilFull(limit, available);
  const isFull = available <= 0;
  return {
    ...common,
    usedShare,
    debt,
    debtShare: capacity === 0 ? 0 : Math.min(1, debt / capacity),
    level: isFull ? 'full' : usedShare >= HIGH_SHARE ? 'high' : 'calm',
    reserves: Object.entries(configured.reserve ?? {}).map(([priority, share]) => ({
      priority,
      fromShare: 1 - share,
      tokens: holdsSlots(limit) ? Math.ceil(capacity * share) : capacity * share,
    })),
    summary: summaryOf(used, capacity, debt, holdsSlots(limit) ? ' slots' : '', fullInMs),
  };
}

/** When the whole capacity is available again; null: slots return when their leases end. */
export function timeUntilFull({ kind, capacity, refillAmount, refillPeriodMs }: LimitView, available: number | null) {
  if (capacity === null || available === null || available >= capacity) return 0;
  if (kind !== 'rate' || refillAmount === 0) return null;
  return Math.ceil(((capacity - available) / refillAmount) * refillPeriodMs);
}

function summaryOf(used: number, capacity: number, debt: number, unit: string, fullInMs: number | null): string {
  const owed = debt > 0 ? `, ${formatCount(debt)} in debt` : '';
  const full = fullInMs === null || fullInMs === 0 ? '' : `, full again in ${formatDuration(fullInMs)}`;
  return `${formatCount(used)} of ${formatCount(capacity)}${unit} used${owed}${full}`;
}

/** Whether a stored pause still runs. */
export function isRunning(pause: StoredPause | undefined, nowMs: number): pause is StoredPause {
  return pause !== undefined && (pause.until === null || Date.parse(pause.until) > nowMs);
}
