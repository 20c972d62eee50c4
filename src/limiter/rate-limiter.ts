import type { Awaitable, Backend } from '../backend.js';
import type { LimitStatus } from '../core/bucket/decide.js';
import { NamespaceNotFound, ValidationError } from '../core/errors.js';
import { checkNamespace } from '../core/identifiers.js';
import { RateLimitExceeded } from '../core/rate-limit-exceeded.js';
import { attempt, attemptWithoutStore, tell } from './acquire/acquire.js';
import type { Ask } from './acquire/ask.js';
import { AuditApi } from './api/audit-api.js';
import { BucketsApi } from './api/buckets-api.js';
import { closedError } from './outage/closed-error.js';
import { ConfigApi } from './api/config-api.js';
import type { Context } from './context.js';
import { report } from './store-context.js';
import type { Decision } from './acquire/decision.js';
import { EntitiesApi } from './api/entities-api.js';
import { LeasesApi } from './api/leases-api.js';
import type { Lease } from './lease/lease.js';
import { ManifestApi } from './manifest/manifest-api.js';
import { NamespacesApi } from './api/namespaces-api.js';
import { checkCloseOptions, type CloseOptions, StoreConnection, type PingResult } from './store-connection.js';
import { openByPolicy } from './outage/opening.js';
import { type LimiterOptions, resolveOptions } from './options.js';
import type { AcquireRequest } from './acquire/request.js';
import { ResourcesApi } from './api/resources-api.js';
import { checkOnThrow, type RunOptions, runUnder } from './lease/run.js';
import { available, peekStatuses, status, type StatusRequest, timeUntilAvailable } from './acquire/status.js';
import { checkOptionsObject, isBackend, namespaceIn, storeFrom, storeOrAddress } from './store-url.js';
import { UsageApi } from './api/usage-api.js';
import { attemptUntil } from './waiting/waiting.js';

/** Decides whether calls may go ahead, against a store that other processes may share. */
export class RateLimiter<L extends string = string> {
  readonly audit: AuditApi;
  readonly buckets: BucketsApi;
  readonly config: ConfigApi;
  readonly entities: EntitiesApi;
  readonly leases: LeasesApi;
  readonly manifest: ManifestApi;
  readonly namespaces: NamespacesApi;
  readonly resources: ResourcesApi;
  readonly usage: UsageApi;
  readonly #store: StoreConnection;
  readonly #namespace: string;
  readonly #ownsStore: boolean;
  #context: Context | null = null;
  /** Why the store could not be opened at the start, while the background still tries. */
  #outage: unknown = null;
  #closed = false;

  /** `RateLimiter.open` without I/O: the first call opens. */
  constructor(options?: LimiterOptions<L>);
  constructor(store: string | Backend | undefined, options?: LimiterOptions<L>);
  /** @internal Another namespace of a store that is open. */
  constructor(store: StoreConnection, namespace: string);
  constructor(first?: string | Backend | LimiterOptions<L> | StoreConnection, second?: LimiterOptions<L> | string) {
    if (first instanceof StoreConnection) {
      this.#store = first;
      this.#namespace = second as string;
      this.#ownsStore = false;
    } else {
      const given = typeof first === 'string' || first === undefined || isBackend(first);
      if (!given) checkOptionsObject(first);
      const { env } = process;
      const store = storeOrAddress(given ? first : undefined, env);
      const asked = ((given ? second : first) ?? {}) as LimiterOptions;
      const options = resolveOptions(asked, env, namespaceIn(store));
      this.#store = new StoreConnection(storeFrom(store, options, env), options);
      this.#namespace = options.namespace;
      this.#ownsStore = true;
    }
    const context = (): Awaitable<Context> => this.#context ?? this.#open();
    this.audit = new AuditApi(context);
    this.buckets = new BucketsApi(context);
    this.config = new ConfigApi(context, () => this.#context);
    this.entities = new EntitiesApi(context);
    this.leases = new LeasesApi(context);
    this.manifest = new ManifestApi(context);
    this.namespaces = new NamespacesApi(this.#store);
    this.resources = new ResourcesApi(this.buckets);
    this.usage = new UsageApi(context);
  }

  /**
   * Opens a store: `HEADGATE_URL`, else memory, unless one is given. Creates nothing. While the store is out, `block`
   * rejects after `timeouts.openMs`; `allow` and `local` resolve, and the store is opened once it answers.
   */
  static open<L extends string = string>(options?: LimiterOptions<L>): Promise<RateLimiter<L>>;
  static open<L extends string = string>(
    store: string | Backend | undefined,
    options?: LimiterOptions<L>,
  ): Promise<RateLimiter<L>>;
  static async open<L extends string = string>(
    first?: string | Backend | LimiterOptions<L>,
    second?: LimiterOptions<L>,
  ): Promise<RateLimiter<L>> {
    const limiter = new RateLimiter<L>(first as string | Backend | undefined, second);
    await limiter.#openAtStart();
    return limiter;
  }

  /** A lease, or why not and for how long. Rejects on bad input, and on an outage that blocks. */
  tryAcquire(request: AcquireRequest<L>): Promise<Decision<L>> {
    return this.#decide(request, 'decision', asMade);
  }

  /** A lease; throws `RateLimitExceeded` on a denial. */
  acquire(request: AcquireRequest<L>): Promise<Lease<L>> {
    return this.#decide(request, 'lease', leaseOf);
  }

  /** Runs `work` under a lease: commits when it returns, rolls back when it throws, extends the lease meanwhile. */
  async run<T>(
    request: AcquireRequest<L> & RunOptions,
    work: (lease: Lease<L>) => T | Promise<T>,
    options?: RunOptions,
  ): Promise<T> {
    const onThrow = options?.onThrow ?? request?.onThrow;
    checkOnThrow(onThrow);
    if (typeof work !== 'function') throw new ValidationError('work', 'a function that runs under the lease', work);
    const lease = await this.acquire(request);
    return runUnder(this.#store.runtime, lease, work, onThrow);
  }

  /** Every limit of every level, as an acquire would find it now. */
  async status(request: StatusRequest): Promise<LimitStatus[]> {
    return status(await this.#opened(), request);
  }

  /** What is left of each limit, at the tightest level. */
  async available(request: StatusRequest): Promise<Record<L, number>> {
    return available(await this.#opened(), request);
  }

  /** Milliseconds until the request would be granted; null for never. */
  async timeUntilAvailable(request: AcquireRequest<L>): Promise<number | null> {
    return timeUntilAvailable(await this.#opened(), request);
  }

  /** What each limit of each level would say to the request, as in a decision's `statuses`. Takes nothing. */
  async peek(request: AcquireRequest<L>): Promise<LimitStatus[]> {
    return peekStatuses(await this.#opened(), request);
  }

  /** The same store, client and caches; another namespace. */
  async in(namespace: string): Promise<RateLimiter<L>> {
    checkNamespace(namespace);
    const other = new RateLimiter<L>(this.#store, namespace);
    await other.#open();
    return other;
  }

  /** Whether the store answers, and how fast. Never throws. */
  async ping(options?: { readonly timeoutMs?: number }): Promise<PingResult> {
    if (this.#closed) return { ok: false, error: closedError() };
    return this.#store.ping(this.#namespace, options?.timeoutMs);
  }

  /**
   * Ends the waits of this limiter, and closes the store if this limiter opened it: then also the waits of other
   * namespaces of that store. They reject with `BackendUnavailable`, as do calls that come after. Before a store is
   * closed, the slots of leases that are still open are given back, unless `leases` is `keep`.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkCloseOptions(options);
    if (this.#closed) return;
    this.#closed = true;
    this.#context?.lines.close(closedError(), this);
    this.#context = null;
    if (this.#ownsStore) await this.#store.close(options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #decide<T>(request: AcquireRequest<L>, wants: Ask['wants'], finish: (decision: Decision) => T): Promise<T> {
    if (this.#context !== null) return decide(this.#context, request, wants, finish, this);
    // The background tries to open the store: no call needs to wait for another attempt.
    if (this.#outage !== null && !this.#closed) return this.#decideWithoutStore(request, this.#outage, finish);
    return this.#open().then(
      (context) => {
        if (this.#closed) throw closedError();
        return decide(context, request, wants, finish, this);
      },
      (error: unknown) => {
        if (this.#closed) throw error;
        return this.#decideWithoutStore(request, error, finish);
      },
    );
  }

  #decideWithoutStore<T>(request: AcquireRequest<L>, error: unknown, finish: (decision: Decision) => T): Promise<T> {
    const context = this.#store.unopenedContextOf(this.#namespace);
    return attemptWithoutStore(context, request, error, (decision) => {
      tell(context, request, decision);
      return finish(decision);
    });
  }

  async #openAtStart(): Promise<void> {
    const { options, clock } = this.#store.runtime;
    const pending = await openByPolicy({
      attempt: (timeoutMs) => this.#open(timeoutMs),
      options,
      clock,
      isClosed: () => this.#closed,
      report: (error, where) => report(options, error, where),
    });
    if (pending === null) return;
    this.#outage = pending.outage;
    void pending.ended.finally(() => {
      this.#outage = null;
    });
  }

  #opened(): Awaitable<Context> {
    return this.#context ?? this.#open();
  }

  async #open(timeoutMs?: number): Promise<Context> {
    if (this.#closed) throw closedError();
    const context = await this.#store.contextOf(this.#namespace, timeoutMs);
    if (context === undefined) throw new NamespaceNotFound(this.#namespace);
    if (!this.#closed) this.#context = context;
    return context;
  }
}

function decide<T>(
  context: Context,
  request: AcquireRequest,
  wants: Ask['wants'],
  finish: (decision: Decision) => T,
  limiter: object,
): Promise<T> {
  const told = (decision: Decision): T => {
    tell(context, request, decision);
    return finish(decision);
  };
  const end = context.options.onDecision === null ? finish : told;
  if (request?.wait === undefined) return attempt(context, request, wants, end);
  return attemptUntil(context, request, limiter).then(end);
}

function asMade(decision: Decision): Decision {
  return decision;
}

function leaseOf(decision: Decision): Lease {
  if (!decision.granted) throw new RateLimitExceeded(decision);
  return decision.lease;
}
