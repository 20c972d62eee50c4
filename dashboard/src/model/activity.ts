import type { Decision, LiveEvent } from '../api/events.js';
import type { PausedBy } from '../api/types.js';
import { formatDuration } from './format.js';
import { Durations } from './durations.js';
import { LastItems } from './last-items.js';
import { SecondRing } from './second-ring.js';
import { RecentTopK } from './top-k.js';

const HISTORY_SECONDS = 300;
const TOP_SIZE = 512;
const WINDOW_MS = 30_000;
const MAX_PAUSES = 100;
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
  readonly type: 'pause' | 'resume' | 'config-change' | 'provider-throttle' | 'outage-begin' | 'outage-end';
  readonly text: string;
}

export interface Denial {
  readonly atMs: number;
  readonly decision: Decision;
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
  readonly durations = new Durations();
  readonly changes = new LastItems<Change>(RECENT);
  readonly #pauses = new Map<string, PausedBy>();
  #watched: { readonly entityId: string; readonly denials: LastItems<Denial> } | null = null;
  readonly #startMs: number;
  /** The seconds in which the page was not connected, so that their counts are not known. */
  readonly #unknown = new SecondRing(HISTORY_SECONDS);
  #lostMs: number | null = null;
  /** Events that the server could not send to this page. */
  missed = 0;
  outage: { readonly sinceMs: number; readonly error: string } | null = null;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** How many seconds of history are worth drawing: those since the page was opened, and at least a minute. */
  secondsAt(atMs: number): number {
    return Math.min(HISTORY_SECONDS - 1, Math.max(60, Math.ceil((atMs - this.#startMs) / 1_000)));
  }

  /** The connection is lost: counts from now on are not known. */
  lose(atMs: number): void {
    this.#lostMs ??= atMs;
  }

  /** Events arrive again. */
  regain(atMs: number): void {
    if (this.#lostMs === null) return;
    const fromMs = Math.max(this.#lostMs, atMs - HISTORY_SECONDS * 1_000);
    for (let at = Math.floor(fromMs / 1_000); at <= Math.floor(atMs / 1_000); at++) this.#unknown.add(at * 1_000, 1);
    this.#lostMs = null;
  }

  /** The counts of the last whole seconds, oldest first. null: not known, because the page was not open or not connected. */
  history(ring: SecondRing, atMs: number, seconds: number): (number | null)[] {
    const unknown = this.#unknown.read(atMs);
    const firstSecond = Math.floor(atMs / 1_000) - unknown.length;
    const openedAt = Math.floor(this.#startMs / 1_000);
    const lostAt = this.#lostMs === null ? Number.POSITIVE_INFINITY : Math.floor(this.#lostMs / 1_000);
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
        this.#pause(event.data);
        this.#change(atMs, event.type, `${nameOf(event.data)}: ${event.data.reason}`);
        return;
      case 'resume':
        this.#pauses.delete(keyOf(event.data));
        this.#change(atMs, event.type, nameOf(event.data));
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
        this.#change(atMs, event.type, nameOf(event.data));
        return;
      case 'provider-throttle':
        this.#change(atMs, event.type, `${nameOf(event.data)}: ${throttleText(event.data)}`);
        return;
      case 'missed':
        this.missed += event.data.count;
    }
  }

  /** Keeps the last denials of one entity. */
  watch(entityId: string): void {
    if (this.#watched?.entityId !== entityId) this.#watched = { entityId, denials: new LastItems(RECENT) };
  }

  denialsOf(entityId: string): readonly Denial[] {
    return this.#watched?.entityId === entityId ? this.#watched.denials.newest() : [];
  }

  /** The pauses that this server has made or met, without those that have ended. */
  pausesAt(atMs: number): readonly PausedBy[] {
    return [...this.#pauses.values()].filter(({ until }) => until === null || Date.parse(until) > atMs);
  }

  #decide(decision: Decision, atMs: number): void {
    const { entityId, resource, granted, decidedBy, paused } = decision;
    (granted ? this.granted : this.denied).add(atMs, 1);
    if (decidedBy === 'fallback' || decidedBy === 'open') this.degraded.add(atMs, 1);
    this.durations.add(decision.durationMs);
    const caller = `${entityId}\n${resource}`;
    if (granted) {
      this.allowedCallers.add(atMs, caller, { entityId, resource });
      return;
    }
    this.refusedCallers.add(atMs, caller, { entityId, resource });
    if (paused !== null) this.#pause(paused);
    for (const refusal of refusalsOf(decision)) {
      this.refusals.add(atMs, `${caller}\n${refusal.limit ?? ''}\n${refusal.level}`, refusal);
    }
    if (this.#watched?.entityId === entityId) this.#watched.denials.add({ atMs, decision });
  }

  #pause(paused: PausedBy): void {
    const key = keyOf(paused);
    this.#pauses.delete(key);
    this.#pauses.set(key, paused);
    for (const oldest of this.#pauses.keys()) {
      if (this.#pauses.size <= MAX_PAUSES) break;
      this.#pauses.delete(oldest);
    }
  }

  #change(atMs: number, type: Change['type'], text: string): void {
    this.changes.add({ atMs, type, text });
  }
}

function refusalsOf({ entityId, resource, reason, retryAfterMs, violations, paused }: Decision): Refusal[] {
  const caller = { entityId, resource, reason: reason ?? 'denied' };
  if (violations.length === 0) return [{ ...caller, limit: null, level: paused?.entityId ?? entityId, retryAfterMs }];
  return violations.map((one) => ({
    ...caller,
    limit: one.limit,
    level: one.entityId,
    retryAfterMs: one.retryAfterMs,
  }));
}

function throttleText(data: Extract<LiveEvent, { readonly type: 'provider-throttle' }>['data']): string {
  const { dimension, retryAfterMs } = data;
  const wait = retryAfterMs === null ? 'no wait stated' : `for ${formatDuration(retryAfterMs)}`;
  return dimension === null ? wait : `${dimension}, ${wait}`;
}

interface Named {
  readonly entityId: string | null;
  readonly resource: string | null;
}

function keyOf({ entityId, resource }: Named): string {
  return `${entityId ?? ''}\n${resource ?? ''}`;
}

function nameOf({ entityId, resource }: Named): string {
  if (entityId === null) return resource === null ? 'the system' : `every entity on ${resource}`;
  return resource === null ? entityId : `${entityId} on ${resource}`;
}
