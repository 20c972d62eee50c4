/**
 * The port: what a store must do. The limiter resolves the parent chain and the limits of every level, and passes all
 * levels in one call. The backend alone decides how to write them (one item, parallel writes, a transaction, shards).
 * The port states intent and has no store-specific terms. A backend reads no clock: each call passes `nowMs`.
 *
 * Return a plain value when the result is available synchronously: the limiter then sets no timer and awaits nothing.
 *
 * Takes and leases are declared here, the stores of records in `backend/`. Every other layer imports this file.
 */
import type { AuditStore } from './backend/audit-store.js';
import type { BucketStore } from './backend/bucket-store.js';
import type { Awaitable, Call } from './backend/call.js';
import type { ConfigStore } from './backend/config-store.js';
import type { EntityStore } from './backend/entity-store.js';
import type { LeaseStore } from './backend/lease-store.js';
import type { ManagedStore } from './backend/managed-store.js';
import type { NamespaceStore } from './backend/namespace-store.js';
import type { UsageStore } from './backend/usage-store.js';
import type { Amount, AskedAmount, Holder, PortablePart, Verdict } from './core/bucket/decide.js';
import type { DenialReason } from './core/bucket/conclude.js';
import type { RateChange } from './core/bucket/holder-rules.js';
import type { ClosedState, PortableChange } from './core/bucket/portable.js';
import type { ResidentBuckets } from './core/bucket/resident-buckets.js';
import type { ConfigVersion } from './core/config/config.js';
import type { Limit } from './core/limit.js';
import type { Pause } from './core/pause.js';
import type { EpochMs } from './core/units.js';

export type { AuditAction, AuditPageRequest, AuditRecord, AuditStore } from './backend/audit-store.js';
export type { BucketRecord, BucketStore, BucketToPause } from './backend/bucket-store.js';
export type { AdminCall, Awaitable, Call, ManagedMark, Page, PageRequest, Reshard, Tuning } from './backend/call.js';
export { MAX_READ } from './backend/call.js';
export type { ConfigChange, ConfigRead, ConfigStore, LevelRecord } from './backend/config-store.js';
export type { EntityChange, EntityRecord, EntityStore } from './backend/entity-store.js';
export type { LeaseLevel, LeaseRecord, LeaseStore } from './backend/lease-store.js';
export type { ManagedRecord, ManagedStore } from './backend/managed-store.js';
export type { NamespaceRecord, NamespaceStore, RegistryCall, RegistryChange } from './backend/namespace-store.js';
export type { UsageQuery, UsageRecord, UsageStore } from './backend/usage-store.js';

/** One bucket and the limits that it should apply. */
export interface LevelRef {
  readonly entityId: string;
  /** The resource's name, or `{resource}~{hash}` for a bucket of per-call limits. */
  readonly resource: string;
  readonly limits: readonly Limit[];
  readonly version: ConfigVersion;
  /** The limits are configured for exactly this entity and resource: the bucket is kept however long it is idle. */
  readonly lasting?: boolean;
}

/** Where a store recorded what a lease took (for example in which shards): plain data that only the store reads. */
export type GrantLocation = unknown;

export interface LevelAsk extends LevelRef {
  /**
   * The amount to take from each limit, with the options of the limit that apply to the ask. Names of limits that the
   * bucket does not have are ignored. The options that a bucket may have stored with its limits are not used.
   */
  readonly asks: readonly AskedAmount[];
  /** The holder to store in the bucket until the lease ends; null for none. */
  readonly holder: Holder | null;
}

/** What one bucket answers to an ask. */
export interface LevelAnswer {
  /** One for each limit that was asked and exists. If the ask was granted, each also says what was taken. */
  readonly verdicts: readonly Verdict[];
  /** The bucket has newer and different rules than the ask, and decided by them. The client must read the config again. */
  readonly configIsOlder: boolean;
  /** The running pause of the bucket. It refuses every ask, whatever the verdicts say. */
  readonly pause?: Pause;
  /** Set on a grant. The limiter passes it with every later call for the lease. */
  readonly place?: GrantLocation;
}

/** One ask at all levels of an entity. */
export interface ConsumeRequest {
  /** The key of the holders; null if no level keeps one. */
  readonly leaseId: string | null;
  /** The entity first, then its parents. Either every level grants or nothing is taken. */
  readonly levels: readonly LevelAsk[];
  /**
   * The limit that may be cut. Its asks have `atMost`, except where the limit is a shadow. Every level that has the limit
   * takes the same amount: what the level with the least can give.
   */
  readonly atMost?: string;
  /** Writes all levels in one transaction, even where that costs more: a crash cannot leave only some levels charged. */
  readonly atomic?: boolean;
}

/** `id-taken`: the bucket already has a holder with that id. Nothing was taken: ask again with another id. */
export type ConsumeOutcome = ConsumeDecision | { readonly kind: 'id-taken' };

/** A grant or a denial, with the answer of every level. */
export type ConsumeDecision =
  | { readonly kind: 'granted'; readonly levels: readonly LevelAnswer[] }
  | {
      readonly kind: 'denied';
      readonly reason: DenialReason;
      readonly retryAfterMs: number | null;
      readonly levels: readonly LevelAnswer[];
      /** The deny cache of this process decided, without a request to the store. */
      readonly remembered?: boolean;
      /** The lease would be one that no slot bounds, and a shard has as many holders as it may have. */
      readonly crowded?: true;
    };

/**
 * What a store knows of the changes that a lease has made at one level: of one that was made in part, or whose answer came
 * after the limiter's deadline. Only the store reads and sets it. The lease passes the same object with every change.
 */
export interface ChangeProgress {
  state?: unknown;
}

/**
 * How a lease changes what it has taken from one bucket. `holder` is `none`: the lease has no holder there. `keep`: the
 * holder stays, with the new amounts if it carries rates. `release`: it is removed, and its slots return.
 */
export interface LevelChange extends LevelRef, RateChange {
  readonly holder: 'none' | 'keep' | 'release';
  readonly place?: GrantLocation;
  /** Left out: no earlier change is to be continued. With a state in it, the change names all that the lease has taken. */
  readonly progress?: ChangeProgress;
}

/** The changes that a lease makes at its levels. */
export interface AdjustRequest {
  readonly leaseId: string;
  readonly levels: readonly LevelChange[];
}

/** An operation of a portable lease on one bucket. The stored holder decides its effect, so it can be repeated. */
export type LevelOperation = LevelRef & PortableChange & { readonly place?: GrantLocation };

/** An operation of a portable lease at its levels. */
export interface OperateRequest {
  readonly leaseId: string;
  readonly levels: readonly LevelOperation[];
}

/**
 * Each level succeeds or fails separately. A successful level is not undone; a retry sends only the failed levels.
 * `isUnfinished`: the store has kept in `progress` what is left to do, and the next change continues there.
 */
export type LevelResult =
  | {
      readonly kind: 'done';
      readonly holderLost: boolean;
      /** Whether the next change must still look for a holder. Left out: if this one kept it and found it. */
      readonly holds?: boolean;
      readonly isUnfinished?: boolean;
    }
  | {
      readonly kind: 'failed';
      readonly error: unknown;
      readonly isUnfinished?: boolean;
      /** The refund may have landed. A retry could give it back twice. */
      readonly mayHaveRefunded?: boolean;
    };

/** What an operation of a portable lease has done at one level. */
export type OperationResult =
  /** The account of the lease in this bucket now. */
  | { readonly kind: 'done'; readonly part: PortablePart }
  /** The holder no longer exists. What the operation says is due then was charged. */
  | { readonly kind: 'lost' }
  /** Another process has ended the lease in a way that contradicts the operation. Nothing was changed. */
  | { readonly kind: 'closed'; readonly state: ClosedState; readonly part: PortablePart }
  /** The operation may have landed. It can be sent again: it counts once. */
  | { readonly kind: 'failed'; readonly error: unknown };

/** A new expiry for the holders of a lease. */
export interface ExtendRequest {
  readonly leaseId: string;
  /** Only the levels that keep a holder. */
  readonly levels: readonly Pick<LevelChange, 'entityId' | 'resource' | 'place' | 'progress'>[];
  readonly expiresAtMs: EpochMs;
}

/** What a charge takes from one bucket (positive) or a credit gives back (negative), without a lease. */
export interface LevelCharge extends LevelRef {
  /** Of rates and unlimited limits. Names of limits that the bucket does not have are ignored. */
  readonly deltas: readonly Amount[];
}

/** Makes a charge count once, for 24 hours. */
export interface ChargeReceipt {
  readonly entityId: string;
  readonly resource: string;
  readonly id: string;
  /** What is counted, as text: a charge with the same id and another content is refused. */
  readonly content: string;
}

/** A charge or a credit at all levels of an entity. */
export interface ChargeLevels {
  readonly levels: readonly LevelCharge[];
  /** null: a call that is repeated counts again. */
  readonly receipt: ChargeReceipt | null;
}

/** `repeated`: an earlier call with this id has counted. `id-used`: it had another content. Both changed nothing. */
export type ChargeOutcome = { readonly kind: 'charged' | 'repeated' | 'id-used' };

/**
 * What a store implements. Every call passes the time: a store reads no clock. Return a plain value where the result is
 * available synchronously.
 */
export interface Backend {
  readonly name: string;
  /** The data is lost when the process ends. A program may warn where that would surprise its user. */
  readonly ephemeral: boolean;

  /** Loads code that the backend needs. That can be slow on a cold machine and must not count as a slow store. */
  load?(): Promise<void>;
  /** Checks that the store exists and has a version that this code supports. Creates nothing. */
  open(timeoutMs: number): Awaitable<void>;
  /** Ends connections and background work. Calls that come later reject. */
  close(): Awaitable<void>;
  /** The time that all clients of the store share, if there is one. It never goes back. null: not known yet. */
  storeTimeMs?(): EpochMs | null;

  /**
   * Takes from all levels or none, in the order of the calls. Creates missing buckets full. Undoes its takes before it
   * rejects.
   */
  consume(call: Call, request: ConsumeRequest): Awaitable<ConsumeOutcome>;
  /** Changes what a lease has taken, and keeps or removes its holder. One result per level. */
  adjust(call: Call, request: AdjustRequest): Awaitable<readonly LevelResult[]>;
  /**
   * Charges into debt or credits up to the capacity. Creates missing buckets. With a receipt, all levels and the receipt are
   * written or nothing is; without one, a call that rejects may have counted at some levels.
   */
  charge(call: Call, request: ChargeLevels): Awaitable<ChargeOutcome>;
  /** Makes an operation of a portable lease, at each level separately. One result per level. */
  operate(call: Call, request: OperateRequest): Awaitable<readonly OperationResult[]>;
  /**
   * Moves the expiry of a lease's holders. False: at least one holder no longer exists, so the lease is lost. A state:
   * another process has ended the portable lease.
   */
  extend(call: Call, request: ExtendRequest): Awaitable<boolean | ClosedState>;
  /** The answer that `consume` would give for each level, without a write. A limit that the ask does not name is asked for 0. */
  peek(call: Call, levels: readonly LevelAsk[]): Awaitable<readonly LevelAnswer[]>;
  /** A shorter way than `consume`, for a store whose buckets are objects of this process. */
  readonly resident?: ResidentBuckets;

  readonly config: ConfigStore;
  readonly entities: EntityStore;
  readonly managed: ManagedStore;
  readonly namespaces: NamespaceStore;
  readonly audit: AuditStore;
  readonly usage: UsageStore;
  readonly buckets: BucketStore;
  readonly leases: LeaseStore;
}
