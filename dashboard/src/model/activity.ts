import type { Decision, LiveEvent } from '../api/events.js';
import { Denials } from './denials.js';
import { Durations } from './durations.js';
import { LastItems } from './last-items.js';
import { nameOfLevel } from './levels.js';
import { PauseList } from './pause-list.js';
import { SecondRing } from './second-ring.js';
import { Settlements } from './settlements.js';
import { Throttles } from './throttles.js';
import { RecentTopK } from './top-k.js';

const HISTORY_SECONDS = 300;
const TOP_SIZE = 512;
const WINDOW_MS = 30_000;
/** Calls that wait are fewer than decisions. */
const WAITS_WINDOW_MS = 300_000;
const RECENT = 50;

/** Who was refused, by which limit of which level. `limit` null: a pause refused. */
export interface Refusal {
  readonly entityId: string;
  readonly resource: string;
  readonly limit: string | null;
  readonly level: string;
  readonly reason: string;
  readonly retryAfterMs: number | null;
}

export interface Caller {
  readonly entityId: string;
  readonly resource: string;
}

export interface Change {
  readonly atMs: number;
  readonly type: 'pause' | 'resume' | 'config-change' | 'outage-begin' | 'outage-end';
  readonly text: string;
}

/** What the events of a server say, in memory of a fixed size. It is mutable: a page reads it once for each drawing. */
export class Activity {
  readonly granted = new SecondRing(HISTORY_SECONDS);
  readonly denied = new SecondRing(HISTORY_SECONDS);
  /** Decisions of the outage policy, also counted as granted or denied. */
  readonly degraded = new SecondRing(HISTORY_SECONDS);
  readonly refusals = new RecentTopK<Refusal>(TOP_SIZE, WINDOW_MS);
  readonly refusedCallers = new RecentTopK<Caller>(TOP_SIZE, WINDOW_MS);
  readonly allowedCallers = new RecentTopK<Caller>(TOP_SIZE, WINDOW_MS);
  readonly durations = new Durations(WINDOW_MS);
  /** Of the calls that had to wait. */
  readonly waits = new Durations(WAITS_WINDOW_MS);
  readonly settlements = new Settlements();
  readonly changes = new LastItems<Change>(RECENT);
  /** The pauses that this server has made or met since the page is connected. */
  readonly pauses = new PauseList();
  readonly throttles = new Throttles();
  readonly denials = new Denials();
  readonly #startMs: number;
  /** The seconds in which the page was not connected, so that their counts are not known. */
  readonly #unknown = new SecondRing(HISTORY_SECONDS);
  #lostMs: number | null = null;
  /** Events that the server could not send to this page. */
  missed = 0;
  /**
   * null: the store answers. undefined: not known, because nothing has said so since the page is connected. `error` null: the
   * outage began before.
   */
  outage: { readonly sinceMs: number; readonly error: string | null } | null | undefined;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** How many seconds of history are worth drawing: those since the page was opened, and at least a minute. */
  secondsAt(atMs: number): number {
    return Math.min(HISTORY_SECONDS - 1, Math.max(60, Math.ceil((atMs - this.#startMs) / 1_000)));
  }

  /** The connection is lost: what happens from now on is not known. */
  lose(atMs: number): void {
    this.#lostMs ??= atMs;
    this.outage = undefined;
  }

  /**
   * Events arrive again. What ended meanwhile was not reported: the server may be a new one. True if they were lost: then the
   * pauses are to be checked.
   */
  regain(atMs: number): boolean {
    if (this.#lostMs === null) return false;
    const fromMs = Math.max(this.#lostMs, atMs - HISTORY_SECONDS * 1_000);
    for (let at = Math.floor(fromMs / 1_000); at <= Math.floor(atMs / 1_000); at++) this.#unknown.add(at * 1_000, 1);
    this.#lostMs = null;
    return true;
  }

  /** The counts of the last whole seconds, oldest first. null: not known, because the page was not open or not connected. */
  history(ring: SecondRing, atMs: number, seconds: number): (number | null)[] {
    const unknown = this.#unknown.read(atMs);
    const firstSecond = Math.floor(atMs / 1_000) - unknown.length;
    const openedAt = Math.floor(this.#startMs / 1_000);
    const lostAt = this.#lostMs === null ? Infinity : Math.floor(this.#lostMs / 1_000);
    return ring
      .read(atMs)
      .map((count, at) => {
        const second = firstSecond + at;
        return second < openedAt || second >= lostAt || unknown[at] !== 0 ? null : count;
      })
      .slice(-seconds);
  }

  /** The mean of the known ones of the last whole seconds; null: none is known. */
  rate(ring: SecondRing, atMs: number, seconds: number): number | null {
    const known = this.history(ring, atMs, seconds).filter((count) => count !== null);
    return known.length === 0 ? null : known.reduce((sum, count) => sum + count, 0) / known.length;
  }

  apply(event: LiveEvent, atMs: number): void {
    switch (event.type) {
      case 'decision':
        this.#decide(event.data, atMs);
        return;
      case 'pause':
        this.pauses.add(event.data);
        this.#change(atMs, event.type, `${nameOfLevel(event.data)}: ${event.data.reason}`);
        return;
      case 'resume':
        this.pauses.end(event.data);
        this.#change(atMs, event.type, nameOfLevel(event.data));
        return;
      case 'outage-begin':
        this.outage = { sinceMs: atMs, error: event.data.error };
        this.#change(atMs, event.type, event.data.error);
        return;
      case 'outage-end':
        this.outage = null;
        this.#change(atMs, event.type, '');
        return;
      case 'config-change':
        this.#change(atMs, event.type, nameOfLevel(event.data));
        return;
      case 'provider-throttle':
        this.throttles.add(event.data, atMs);
        return;
      case 'lease-end':
        this.settlements.end(event.data);
        return;
      case 'missed':
        this.missed += event.data.count;
    }
  }

  #decide(decision: Decision, atMs: number): void {
    const { entityId, resource, granted, decidedBy, paused, waitedMs = 0 } = decision;
    (granted ? this.granted : this.denied).add(atMs, 1);
    const isDegraded = decidedBy === 'fallback' || decidedBy === 'open';
    if (isDegraded) this.degraded.add(atMs, 1);
    // Only an outage that opens the breaker has events. A shorter one begins and ends with decisions.
    if (typeof this.outage?.error !== 'string' && decidedBy !== 'deny-cache') {
      this.outage = isDegraded ? (this.outage ?? { sinceMs: atMs, error: null }) : null;
    }
    this.durations.add(atMs, decision.durationMs);
    if (waitedMs > 0) this.waits.add(atMs, waitedMs);
    const caller = `${entityId}\n${resource}`;
    if (granted) {
      this.allowedCallers.add(atMs, caller, { entityId, resource });
      this.settlements.add('reserved', decision.tokens);
      return;
    }
    this.refusedCallers.add(atMs, caller, { entityId, resource });
    if (paused !== null) this.pauses.add(paused);
    for (const refusal of refusalsOf(decision)) {
      this.refusals.add(atMs, `${caller}\n${refusal.limit ?? ''}\n${refusal.level}`, refusal);
    }
    this.denials.add({ atMs, decision });
  }

  #change(atMs: number, type: Change['type'], text: string): void {
    this.changes.add({ atMs, type, text });
  }
}

function refusalsOf({ entityId, resource, reason, retryAfterMs, violations, paused }: Decision): Refusal[] {
  const caller = { entityId, resource, reason: reason ?? 'denied' };
  if (violations.length === 0) return [{ ...caller, limit: null, level: paused?.entityId ?? entityId, retryAfterMs }];
  return violations.map(({ limit, entityId: level, retryAfterMs: waitMs }) => {
    return { ...caller, limit, level, retryAfterMs: waitMs };
  });
}
