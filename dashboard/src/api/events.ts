import type { PausedBy } from './types.js';

/** A limit that refused, and the entity of its level. */
export interface Violation {
  readonly entityId: string;
  readonly limit: string;
  readonly requested: number;
  readonly available: number;
  readonly retryAfterMs: number | null;
}

export interface Decision {
  readonly namespace: string;
  readonly entityId: string;
  readonly resource: string;
  readonly consume: Readonly<Record<string, number>>;
  readonly granted: boolean;
  readonly reason: string | null;
  readonly retryAfterMs: number | null;
  readonly decidedBy: 'store' | 'deny-cache' | 'fallback' | 'open';
  readonly violations: readonly Violation[];
  readonly paused: PausedBy | null;
  /** What a grant took of rates. */
  readonly tokens: Readonly<Record<string, number>>;
  readonly durationMs: number;
  /** Left out: the request may not wait. */
  readonly waitedMs?: number;
}

export interface LeaseEnd {
  readonly how: 'committed' | 'rolled-back' | 'expired';
  readonly tokens: Readonly<Record<string, number>>;
}

/** What `GET /v1/events` sends. Types that are not listed are ignored. */
export type LiveEvent =
  | { readonly type: 'decision'; readonly data: Decision }
  | { readonly type: 'pause'; readonly data: PausedBy }
  | { readonly type: 'resume'; readonly data: { readonly entityId: string; readonly resource: string | null } }
  | { readonly type: 'outage-begin'; readonly data: { readonly error: string } }
  | { readonly type: 'outage-end'; readonly data: object }
  | {
      readonly type: 'config-change';
      readonly data: { readonly by: string; readonly entityId: string | null; readonly resource: string | null };
    }
  | {
      readonly type: 'provider-throttle';
      readonly data: {
        readonly entityId: string;
        readonly resource: string;
        readonly dimension: string | null;
        readonly retryAfterMs: number | null;
      };
    }
  | { readonly type: 'lease-end'; readonly data: LeaseEnd }
  | { readonly type: 'missed'; readonly data: { readonly count: number } };

/** null: it has no JSON. The reader ignores types that are not listed. */
export function parseEvent(type: string, data: string): LiveEvent | null {
  try {
    return { type, data: JSON.parse(data) as unknown } as LiveEvent;
  } catch {
    return null;
  }
}
