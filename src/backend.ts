/**
 * The port: what a store must do. The limiter resolves the parent chain and the limits of every level, and hands all
 * levels over at once; the backend alone decides how to write them (in one place, in parallel, in a transaction, over
 * shards). It speaks intent, never a store's dialect, and reads no clock: `nowMs` comes in with the call.
 *
 * A store that has the answer at hand returns it, not a promise of it: then no timer is set and no turn is lost.
 */
import type { ConfigLevel, ConfigLevels, ConfigVersion, OnUnavailable, StoredConfig } from './core/config.js';
import type { Amount, Holder, Verdict } from './core/decide.js';
import type { Limit } from './core/limit.js';
import type { UsageCounts, UsageWindow } from './core/usage.js';
import type { EpochMs } from './core/units.js';

export type Awaitable<T> = T | Promise<T>;

/** What every call brings along. */
export interface Call {
  readonly namespaceId: string;
  readonly nowMs: EpochMs;
  /** How long the store may take. The limiter stops listening after it. */
  readonly timeoutMs: number;
}

/** One bucket and the limits by which it should live. */
export interface LevelRef {
  readonly entityId: string;
  /** The resource's name, or `{resource}~{hash}` for a bucket of per-call limits. */
  readonly resource: string;
  readonly limits: readonly Limit[];
  readonly version: ConfigVersion;
}

export interface LevelAsk extends LevelRef {
  /** What to take, per limit. A limit that the bucket lacks is not asked. */
  readonly asks: readonly Amount[];
  /** What to keep in the bucket until the lease ends, if anything. */
  readonly holder: Holder | null;
}

export interface LevelAnswer {
  /** One for each limit that was asked and exists: also what was taken, if granted. */
  readonly verdicts: readonly Verdict[];
  /** The bucket lives by a newer config than the one handed in: it decided by its own. Read the config again. */
  readonly configIsOlder: boolean;
}

export interface ConsumeRequest {
  /** What holders are stored under; null if no level keeps one. */
  readonly leaseId: string | null;
  /** The entity first, then its parents. All or nothing. */
  readonly levels: readonly LevelAsk[];
}

export type ConsumeOutcome =
  | { readonly kind: 'granted'; readonly levels: readonly LevelAnswer[] }
  | {
      readonly kind: 'denied';
      readonly reason: 'exhausted' | 'contended' | 'impossible';
      readonly retryAfterMs: number | null;
      readonly levels: readonly LevelAnswer[];
    };

export interface LevelChange extends LevelRef {
  /** Positive takes more, into debt if need be; negative gives back. Rates only. */
  readonly deltas: readonly Amount[];
  /**
   * What the lease will have taken of rates: charged whole, instead of the deltas, if an expiry gave everything back.
   * null: expiries of this lease keep the rates.
   */
  readonly totals: readonly Amount[] | null;
  /** What becomes of the lease's holder: there is none, it stays (with the new totals), it goes and its slots return. */
  readonly holder: 'none' | 'keep' | 'release';
}

export interface AdjustRequest {
  readonly leaseId: string;
  readonly levels: readonly LevelChange[];
}

/** Levels fail one by one: what was done stays done, and a repetition sends only the rest. */
export type LevelResult =
  | { readonly kind: 'done'; readonly holderLost: boolean }
  | { readonly kind: 'failed'; readonly error: unknown };

export interface ExtendRequest {
  readonly leaseId: string;
  /** Those levels that keep a holder. */
  readonly levels: readonly { readonly entityId: string; readonly resource: string }[];
  readonly expiresAtMs: EpochMs;
}

/** Everything that resolving one entity and resource needs, in one read. */
export interface ConfigRead {
  readonly levels: ConfigLevels;
  /** undefined: no record of the entity, so no parent. */
  readonly entity: { readonly parentId: string | null; readonly cascade: boolean } | undefined;
}

export interface ConfigChange {
  /** undefined: the stored field stays. null: it goes. */
  readonly limits?: readonly Limit[] | null;
  readonly onUnavailable?: OnUnavailable | null;
}

export interface ConfigStore {
  readFor(call: Call, entityId: string, resource: string): Awaitable<ConfigRead>;
  read(call: Call, level: ConfigLevel): Awaitable<StoredConfig | undefined>;
  /** Gives the stored config with the sequence number that this write took. */
  write(call: Call, level: ConfigLevel, change: ConfigChange): Awaitable<StoredConfig>;
  /** Entities that have limits of their own for a resource. */
  list(call: Call, resource: string, page: PageRequest): Awaitable<Page<string>>;
}

export interface PageRequest {
  readonly limit: number;
  /** The `next` of the page before. */
  readonly after: string | null;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** null: this was the last page. */
  readonly next: string | null;
}

export interface EntityRecord {
  readonly id: string;
  readonly name: string | null;
  readonly parentId: string | null;
  readonly cascade: boolean;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly createdAtMs: EpochMs;
  readonly version: number;
}

export interface EntityStore {
  /** Rejects if the entity exists or its parent does not. */
  create(call: Call, entity: Omit<EntityRecord, 'createdAtMs' | 'version'>): Awaitable<EntityRecord>;
  read(call: Call, id: string): Awaitable<EntityRecord | undefined>;
}

export interface NamespaceRecord {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'deleted' | 'purging';
  readonly createdAtMs: EpochMs;
}

/** The registry of namespaces stands outside of all of them. */
export interface NamespaceStore {
  /** Gives the registered namespace, or registers it under `id`. */
  register(name: string, id: string, nowMs: EpochMs): Awaitable<NamespaceRecord>;
  read(name: string): Awaitable<NamespaceRecord | undefined>;
  list(page: PageRequest): Awaitable<Page<NamespaceRecord>>;
}

export interface UsageQuery {
  readonly entityId: string;
  readonly resource: string;
  readonly window: UsageWindow;
  /** Windows that begin at or after `fromMs` and before `toMs`. */
  readonly fromMs: EpochMs;
  readonly toMs: EpochMs;
}

export interface UsageRecord extends UsageCounts {
  readonly entityId: string;
  readonly resource: string;
  readonly window: UsageWindow;
  readonly startMs: EpochMs;
}

export interface UsageStore {
  /** In the order of time. */
  query(call: Call, query: UsageQuery, page: PageRequest): Awaitable<Page<UsageRecord>>;
}

export interface LeaseRecord extends Holder {
  readonly id: string;
}

export interface LeaseStore {
  list(call: Call, entityId: string, resource: string, page: PageRequest): Awaitable<Page<LeaseRecord>>;
}

export interface Backend {
  readonly name: string;
  /** Nothing outlives the process: worth a warning where that surprises. */
  readonly ephemeral: boolean;

  /** Checks that the store is there and of a version that this code understands. Creates nothing. */
  open(timeoutMs: number): Awaitable<void>;
  close(): Awaitable<void>;

  /** Takes from all levels or from none. A bucket that does not exist is born full. */
  consume(call: Call, request: ConsumeRequest): Awaitable<ConsumeOutcome>;
  /** Moves what a lease took, and gives back or keeps what it holds: one result per level. */
  adjust(call: Call, request: AdjustRequest): Awaitable<readonly LevelResult[]>;
  /** Moves the expiry of a lease's holders. False: at least one is gone, and with it the lease. */
  extend(call: Call, request: ExtendRequest): Awaitable<boolean>;
  /** What `consume` would say of each level, without writing. Every limit is asked, for 0 if not named. */
  peek(call: Call, levels: readonly LevelAsk[]): Awaitable<readonly LevelAnswer[]>;

  readonly config: ConfigStore;
  readonly entities: EntityStore;
  readonly namespaces: NamespaceStore;
  readonly usage: UsageStore;
  readonly leases: LeaseStore;
}
