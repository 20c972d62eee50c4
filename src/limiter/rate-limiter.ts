import type { Awaitable, Backend } from '../backend.js';
import type { LimitStatus } from '../core/bucket/decide.js';
import { ValidationError } from '../core/errors.js';
import { checkNamespace } from '../core/identifiers.js';
import type { PausedBy } from '../core/pause.js';
import { RateLimitExceeded } from '../core/rate-limit-exceeded.js';
import { attempt, attemptWithoutStore, tell } from './acquire/acquire.js';
import type { Ask } from './acquire/ask.js';
import { AuditApi } from './api/audit-api.js';
import { BucketsApi } from './api/buckets-api.js';
import { charge, type ChargeRequest } from './charge/charge.js';
import { closedError } from './outage/closed-error.js';
import { ConfigApi } from './api/config-api.js';
import type { Context } from './context.js';
import { report } from './store-context.js';
import type { Decision } from './acquire/decision.js';
import { emit } from './events/emit.js';
import type { ProviderThrottled } from './events/limiter-event.js';
import { EntitiesApi } from './api/entities-api.js';
import { LeasesApi } from './api/leases-api.js';
import type { Lease } from './lease/lease.js';
import { ManifestApi } from './manifest/manifest-api.js';
import { NamespacesApi } from './api/namespaces-api.js';
import { checkCloseOptions, type CloseOptions, StoreConnection, type PingResult } from './store-connection.js';
import { openByPolicy } from './outage/opening.js';
import { checkText, type LimiterOptions, resolveOptions } from './options.js';
import type { AcquireRequest } from './acquire/request.js';
import { pause, type PauseRequest, resume, type ResumeRequest } from './api/pause-api.js';
import { ResourcesApi } from './api/resources-api.js';
import { checkOnThrow, type RunOptions, runUnder } from './lease/run.js';
import { available, peekStatuses, status, type StatusRequest, timeUntilAvailable } from './acquire/status.js';
import { checkOptionsObject, isBackend, namespaceIn, storeFrom, storeOrAddress } from './store-url.js';
import { UsageApi } from './api/usage-api.js';
import { attemptUntil } from './waiting/waiting.js';
import type { WaitingStatus } from './waiting/waiting-lines.js';

/** Decides whether calls may proceed, using a store that other processes may share. */
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
  /** Who makes the changes of this limiter; undefined: the principal of the options. */
  readonly #principal: string | undefined;
  readonly #ownsStore: boolean;
  #context: Context | null = null;
  /** Why the store could not be opened, while the attempts continue in the background; null otherwise. */
  #outage: unknown = null;
  #closed = false;

  /** Like `RateLimiter.open`, without I/O: the first call opens the store. */
  constructor(options?: LimiterOptions<L>);
  constructor(store: string | Backend | undefined, options?: LimiterOptions<L>);
  /** @internal Another namespace of an open store. */
  constructor(store: StoreConnection, namespace: string, principal?: string);
  constructor(
    first?: string | Backend | LimiterOptions<L> | StoreConnection,
    second?: LimiterOptions<L> | string,
    principal?: string,
  ) {
    this.#principal = principal;
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
    this.leases = new LeasesApi(context, this.#store.runtime.options.leaseSecrets);
    this.manifest = new ManifestApi(context);
    this.namespaces = new NamespacesApi(this.#store, principal);
    this.resources = new ResourcesApi(this.buckets);
    this.usage = new UsageApi(context);
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
  static async open<L extends string = string>(
    first?: string | Backend | LimiterOptions<L>,
    second?: LimiterOptions<L>,
  ): Promise<RateLimiter<L>> {
    const limiter = new RateLimiter<L>(first as string | Backend | undefined, second);
    await limiter.#openAtStart();
    return limiter;
  }

  /** Returns a lease, or the reason and the wait of the denial. Rejects on bad input, and on an outage under `block`. */
  tryAcquire(request: AcquireRequest<L>): Promise<Decision<L>> {
    return this.#decide(request, 'decision', asMade);
  }

  /** Returns a lease; throws `RateLimitExceeded` on a denial. */
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

  /**
   * Takes the amounts at every level that has the limits, without a lease. Never refuses: what is not there becomes debt.
   * Resolves when the store has counted it. With an `id`, a repeated call counts once.
   */
  async charge(request: ChargeRequest<L>): Promise<void> {
    await charge(await this.#opened(), 'charge', request);
  }

  /** Gives the amounts back at every level that has the limits, never above the capacity. With an `id`, a repeated call counts once. */
  async credit(request: ChargeRequest<L>): Promise<void> {
    await charge(await this.#opened(), 'credit', request);
  }

  /**
   * Stops an entity on every resource, or its bucket of one resource: asks are denied with the reason `paused`. Its children
   * stop too where their spending cascades to it. Leases end as before. Returns the pause that applies: of several, the one
   * with the latest end.
   */
  async pause(request: PauseRequest): Promise<PausedBy> {
    return pause(await this.#opened(), request);
  }

  /** Ends the pause of an entity, or of its bucket of one resource. False: it was not paused. */
  async resume(request: ResumeRequest): Promise<boolean> {
    return resume(await this.#opened(), request);
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

  /** @internal Whether tokens of leases can be signed. */
  get hasLeaseSecret(): boolean {
    return this.#store.runtime.options.leaseSecrets.length > 0;
  }

  /** @internal Tells `onEvent` that the provider of a resource refused a call. For integrations. */
  noteThrottle(throttle: Omit<ProviderThrottled, 'type' | 'namespace'>): void {
    const { options } = this.#store.runtime;
    if (options.onEvent === null) return;
    emit(options, { ...throttle, type: 'provider-throttle', namespace: this.#namespace });
  }

  /** The calls of this process that wait in this namespace: one line for each limit and priority class. */
  waiting(): readonly WaitingStatus[] {
    return this.#context?.lines.list() ?? [];
  }

  /** The `statuses` of the decision that the request would get now. Takes nothing. */
  async peek(request: AcquireRequest<L>): Promise<LimitStatus[]> {
    return peekStatuses(await this.#opened(), request);
  }

  /**
   * A limiter for another namespace that shares the store, the client and the caches. `principal`: who makes its changes,
   * for the audit. Default: the principal of this limiter.
   */
  async in(
    namespace: string,
    { principal = this.#principal }: { readonly principal?: string } = {},
  ): Promise<RateLimiter<L>> {
    const other = this.inUnopened(namespace, principal);
    await other.#open();
    return other;
  }

  /** @internal Like `in`, without I/O: the first call looks the namespace up, and asks follow the outage policy meanwhile. */
  inUnopened(namespace: string, principal: string | undefined = this.#principal): RateLimiter<L> {
    checkNamespace(namespace);
    checkText('principal', principal ?? null);
    return new RateLimiter<L>(this.#store, namespace, principal);
  }

  /** Whether the store answers, and how fast. Never throws. */
  async ping(options?: { readonly timeoutMs?: number }): Promise<PingResult> {
    if (this.#closed) return { ok: false, error: closedError() };
    return this.#store.ping(this.#namespace, options?.timeoutMs);
  }

  /**
   * Ends the waits of this limiter. If this limiter opened the store, also ends the waits of the other namespaces and closes
   * the store. Ended waits and later calls reject with `BackendUnavailable`. Before the store is closed, the slots of open
   * leases are given back, unless `leases` is `keep`.
   */
  async close(options: CloseOptions = {}): Promise<void> {
    checkCloseOptions(options);
    if (this.#closed) return;
    this.#closed = true;
    const endedWaits = this.#context?.lines.close(closedError(), this);
    this.#context = null;
    if (this.#ownsStore) await this.#store.close(options, endedWaits);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #decide<T>(request: AcquireRequest<L>, wants: Ask['wants'], finish: (decision: Decision) => T): Promise<T> {
    if (this.#context !== null) return decide(this.#context, request, wants, finish, this);
    // Attempts to open the store run in the background. This call does not wait for one.
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
    const startMs = context.clock.now();
    return attemptWithoutStore(context, request, error, (decision) => {
      tell(context, request, decision, startMs);
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
    const shared = await this.#store.contextOf(this.#namespace, timeoutMs);
    const principal = this.#principal;
    const context = principal === undefined ? shared : { ...shared, options: { ...shared.options, principal } };
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
  const { onDecision, onEvent } = context.options;
  const end: (decision: Decision, waitedMs?: number) => T =
    onDecision === null && onEvent === null ? finish : told(context, request, finish);
  if (request?.wait === undefined) return attempt(context, request, wants, end);
  return attemptUntil(context, request, limiter).then(({ decision, waitedMs }) => end(decision, waitedMs));
}

function told<T>(context: Context, request: AcquireRequest, finish: (decision: Decision) => T) {
  const startMs = context.clock.now();
  return (decision: Decision, waitedMs?: number): T => {
    tell(context, request, decision, startMs, waitedMs);
    return finish(decision);
  };
}

function asMade(decision: Decision): Decision {
  return decision;
}

function leaseOf(decision: Decision): Lease {
  if (!decision.granted) throw new RateLimitExceeded(decision);
  return decision.lease;
}
