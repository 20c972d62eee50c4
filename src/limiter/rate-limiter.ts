import type { Awaitable, Backend } from '../backend.js';
import type { LimitStatus } from '../core/bucket/decide.js';
import type { PausedBy } from '../core/pause.js';
import { RateLimitExceeded } from '../core/rate-limit-exceeded.js';
import type { Decision } from './acquire/decision.js';
import type { AcquireRequest } from './acquire/request.js';
import { available, peekStatuses, status, type StatusRequest, timeUntilAvailable } from './acquire/status.js';
import { AuditApi } from './api/audit-api.js';
import { BucketsApi } from './api/buckets-api.js';
import { ConfigApi } from './api/config-api.js';
import { EntitiesApi } from './api/entities-api.js';
import { LeasesApi } from './api/leases-api.js';
import { NamespacesApi } from './api/namespaces-api.js';
import { pause, type PauseRequest, resume, type ResumeRequest } from './api/pause-api.js';
import { ResourcesApi } from './api/resources-api.js';
import { UsageApi } from './api/usage-api.js';
import { charge, type ChargeRequest } from './charge/charge.js';
import type { Context } from './context.js';
import { decideCall } from './decide-call.js';
import type { Lease } from './lease/lease.js';
import type { RunOptions } from '../core/lease-scope.js';
import { checkRun, runUnder } from './lease/run.js';
import { ManifestApi } from './manifest/manifest-api.js';
import { connect, NamespaceConnection } from './namespace-connection.js';
import type { LimiterOptions } from './options.js';
import type { CloseOptions, PingResult } from './store-connection.js';
import type { WaitingStatus } from './waiting/waiting-status.js';

/** Decides whether calls may proceed, using a store that other processes may share. */
export class RateLimiter<L extends string = string> {
  readonly #connection: NamespaceConnection;
  readonly #opened = (): Awaitable<Context> => this.#connection.opened();
  readonly audit = new AuditApi(this.#opened);
  readonly buckets = new BucketsApi(this.#opened);
  /** @internal For integrations. */
  readonly noteThrottle: NamespaceConnection['noteThrottle'] = (throttle) => this.#connection.noteThrottle(throttle);
  readonly config = new ConfigApi(this.#opened, () => this.#connection.context);
  readonly entities = new EntitiesApi(this.#opened);
  readonly leases: LeasesApi;
  readonly manifest = new ManifestApi(this.#opened);
  readonly namespaces: NamespacesApi;
  readonly resources = new ResourcesApi(this.buckets);
  readonly usage = new UsageApi(this.#opened);

  /** Like `RateLimiter.open`, without I/O: the first call opens the store. */
  constructor(options?: LimiterOptions<L>);
  constructor(store: string | Backend | undefined, options?: LimiterOptions<L>);
  /** @internal Another namespace of an open store. */
  constructor(connection: NamespaceConnection);
  constructor(first?: string | Backend | LimiterOptions<L> | NamespaceConnection, second?: LimiterOptions<L>) {
    this.#connection = first instanceof NamespaceConnection ? first : connect(first, second);
    const { store, principal } = this.#connection;
    this.leases = new LeasesApi(this.#opened, store.runtime.options.leaseSecrets);
    this.namespaces = new NamespacesApi(store, principal);
  }

  /**
   * Opens a store. Default: `HEADGATE_URL`, else memory. Creates nothing. If the store does not answer, `block` rejects after
   * `timeouts.openMs`; `allow` and `local` resolve, and the store is opened in the background once it answers.
   */
  static open<L extends string = string>(options?: LimiterOptions<L>): Promise<RateLimiter<L>>;
  static open<L extends string = string>(
    store: string | Backend | undefined,
    options?: LimiterOptions<L>,
  ): Promise<RateLimiter<L>>;
  static async open(first?: string | Backend | LimiterOptions, second?: LimiterOptions): Promise<RateLimiter> {
    const limiter = new RateLimiter(first as string | Backend | undefined, second);
    await limiter.#connection.openAtStart();
    return limiter;
  }

  /** Returns a lease, or the reason and the wait of the denial. Rejects on bad input, and on an outage under `block`. */
  tryAcquire(request: AcquireRequest<L>): Promise<Decision<L>> {
    return decideCall(this.#connection, request, 'decision', asMade);
  }

  /** Returns a lease; throws `RateLimitExceeded` on a denial. */
  acquire(request: AcquireRequest<L>): Promise<Lease<L>> {
    return decideCall(this.#connection, request, 'lease', leaseOf);
  }

  /** Runs `work` under a lease: commits when it (or its generator) ends, rolls back when it throws, extends meanwhile. */
  async run<T>(
    request: AcquireRequest<L> & RunOptions,
    work: (lease: Lease<L>) => T | Promise<T>,
    options?: RunOptions,
  ): Promise<T> {
    const onThrow = options?.onThrow ?? request?.onThrow;
    checkRun(work, onThrow);
    const lease = await this.acquire(request);
    return runUnder(this.#connection.store.runtime, lease, work, onThrow);
  }

  /**
   * Takes the amounts at every level that has the limits, without a lease. Never refuses: what is not there becomes debt.
   * Resolves when the store has counted it. With an `id`, a repeated call counts once.
   */
  async charge(request: ChargeRequest<L>): Promise<void> {
    await charge(this.#opened, 'charge', request);
  }

  /** Gives the amounts back at every level that has the limits, never above the capacity. `id`: as of a charge. */
  async credit(request: ChargeRequest<L>): Promise<void> {
    await charge(this.#opened, 'credit', request);
  }

  /**
   * Stops an entity on every resource, or its bucket of one resource: asks are denied with the reason `paused`. Its children
   * stop too where their spending cascades to it. Leases end as before. Returns the pause that applies: of several, the one
   * with the latest end.
   */
  async pause(request: PauseRequest): Promise<PausedBy> {
    return pause(this.#opened, request);
  }

  /** Ends the pause of an entity, or of its bucket of one resource. False: it was not paused. */
  async resume(request: ResumeRequest): Promise<boolean> {
    return resume(this.#opened, request);
  }

  /** The current state of every limit of every level. */
  async status(request: StatusRequest): Promise<LimitStatus[]> {
    return status(await this.#opened(), request);
  }

  /** The available tokens of each limit, at the level that has the fewest. */
  async available(request: StatusRequest): Promise<Record<L, number>> {
    return available(await this.#opened(), request);
  }

  /** The milliseconds until the request would be granted; null: never, or not before a `resume`. */
  async timeUntilAvailable(request: AcquireRequest<L>): Promise<number | null> {
    return timeUntilAvailable(await this.#opened(), request);
  }

  /** The calls of this process that wait in this namespace: one line for each limit and priority class. */
  waiting(): readonly WaitingStatus[] {
    return this.#connection.waiting();
  }

  /** The `statuses` of the decision that the request would get now. Takes nothing. */
  async peek(request: AcquireRequest<L>): Promise<LimitStatus[]> {
    return peekStatuses(await this.#opened(), request);
  }

  /**
   * A limiter for another namespace that shares the store, the client and the caches. `principal`: who makes its changes,
   * for the audit. Default: the principal of this limiter.
   */
  async in(namespace: string, { principal }: { readonly principal?: string } = {}): Promise<RateLimiter<L>> {
    const other = this.inUnopened(namespace, principal);
    await other.#connection.open();
    return other;
  }

  /** @internal Like `in`, without I/O: the first call looks the namespace up, and asks follow the outage policy meanwhile. */
  inUnopened(namespace: string, principal?: string): RateLimiter<L> {
    return new RateLimiter<L>(this.#connection.other(namespace, principal));
  }

  /** Whether the store answers, and how fast. Never throws. */
  async ping(options?: { readonly timeoutMs?: number }): Promise<PingResult> {
    return this.#connection.ping(options?.timeoutMs);
  }

  /**
   * Ends the waits of this limiter. If this limiter opened the store, also ends the waits of the other namespaces and closes
   * the store. Ended waits and later calls reject with `BackendUnavailable`. Before the store is closed, the slots of open
   * leases are given back, unless `leases` is `keep`.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    await this.#connection.close(options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function asMade(decision: Decision): Decision {
  return decision;
}

function leaseOf(decision: Decision): Lease {
  if (!decision.granted) throw new RateLimitExceeded(decision);
  return decision.lease;
}
