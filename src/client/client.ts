import type { LimitStatus } from '../core/bucket/decide.js';
import { Limit } from '../core/limit.js';
import { holdsSlots } from '../core/limit-kind.js';
import type { PausedBy } from '../core/pause.js';
import { RateLimitExceeded } from '../core/rate-limit-exceeded.js';
import { checkAmounts } from './check-amounts.js';
import { type ClientOptions, type ProblemBody, Sender } from './http.js';
import { type DecidedBy, type LeaseBody, RemoteLease } from './remote-lease.js';
import type { RunOptions } from '../core/lease-scope.js';
import { type OnError, runUnder } from './run.js';

/** The request of an acquire, as in the library. `limits` may also be texts. */
export interface RemoteRequest<L extends string = string> {
  readonly entityId: string;
  readonly resource: string;
  readonly consume?: { readonly [Name in L]?: number };
  readonly limits?: readonly (Limit | string)[];
  readonly leaseTtlMs?: number;
  /** Makes a lease that can be settled and rolled back, also where only rates are taken. */
  readonly portable?: boolean;
  /** The priority class, if a limit has a reserve against it. */
  readonly priority?: string;
  /** The one limit that may be cut to what there is, at least to 1. `lease.consumed` says how much it took. */
  readonly atMost?: L;
  /** A server accepts waits of 290 s at most, unless it was configured otherwise: `fetch` of Node gives up after 300 s. */
  readonly wait?: { readonly timeoutMs: number; readonly maxWaiting?: number };
  readonly signal?: AbortSignal;
  readonly onUnavailable?: 'block' | 'allow' | 'local';
  readonly atomic?: boolean;
}

/** The answer of `tryAcquire`. `granted` distinguishes the two. */
export type RemoteDecision<L extends string = string> =
  | {
      readonly granted: true;
      readonly lease: RemoteLease<L>;
      readonly statuses: readonly LimitStatus[];
      readonly decidedBy: DecidedBy;
    }
  | {
      readonly granted: false;
      readonly reason: RateLimitExceeded['reason'];
      readonly retryAfterMs: number | null;
      readonly statuses: readonly LimitStatus[];
      readonly violations: readonly LimitStatus[];
      readonly decidedBy: DecidedBy;
      /** The pause, if that is the reason. */
      readonly paused?: PausedBy;
    };

/** What is sent for an acquire or a peek. */
type AskBody = Omit<RemoteRequest, 'signal' | 'limits'> & { readonly limits?: readonly string[] | undefined };

/** A limit of an answer. The client reads its text. */
interface LimitBody extends Pick<Limit, 'name' | 'kind' | 'refillAmount' | 'refillPeriodMs'> {
  readonly text: string;
  readonly capacity: number | null;
}

interface StatusBody extends Omit<LimitStatus, 'limit' | 'available' | 'paused'> {
  readonly limit: LimitBody;
  readonly available: number | null;
  readonly paused?: PauseBody;
}

type PauseBody = Omit<PausedBy, 'until'> & { readonly until: string | null };

interface GrantBody {
  readonly granted: true;
  readonly lease: LeaseBody;
  readonly statuses: readonly StatusBody[];
  readonly decidedBy: DecidedBy;
}

interface DenialBody extends Pick<RateLimitExceeded, 'reason' | 'retryAfterMs'> {
  readonly violations: readonly StatusBody[];
  /** Left out by servers before this field existed. */
  readonly statuses?: readonly StatusBody[];
  readonly decidedBy: DecidedBy;
  readonly paused?: PauseBody;
}

interface AvailableBody {
  readonly available: Readonly<Record<string, number | null>>;
}

/** The bodies of requests and answers, which a test compares with the OpenAPI document. */
export type { AskBody, AvailableBody, DenialBody, GrantBody, StatusBody };

/** A limiter behind a Headgate server. Needs nothing but `fetch`, so that it runs on edge runtimes too. */
export class HeadgateClient<L extends string = string> {
  /** @internal Leases are continued by their tokens only. */
  readonly isRemote = true;
  readonly #sender: Sender;
  readonly #onError: OnError;

  constructor(url: string, options: ClientOptions = {}) {
    this.#sender = new Sender(url, options);
    this.#onError = options.onError ?? warn;
  }

  /** Returns a lease, or the reason and the wait of the denial. Not repeated if no answer comes: it may have been granted. */
  async tryAcquire(request: RemoteRequest<L>): Promise<RemoteDecision<L>> {
    const { signal, ...ask } = request;
    const sending = { repeatable: false, signal, waitMs: ask.wait?.timeoutMs ?? 0, member: 'lease' } as const;
    const answer = await this.#sender.send('POST', '/v1/acquire', bodyOf(ask), sending);
    return answer.isDenial
      ? denied(answer.body as ProblemBody)
      : granted(this.#sender, request, answer.body as GrantBody);
  }

  /** Returns a lease; throws `RateLimitExceeded` on a denial. */
  async acquire(request: RemoteRequest<L>): Promise<RemoteLease<L>> {
    const decision = await this.tryAcquire(request);
    if (!decision.granted) throw new RateLimitExceeded(decision);
    return decision.lease;
  }

  /**
   * Runs `work` under a lease, and extends the lease meanwhile: commits when it returns, gives back what was not settled when
   * it throws. For an async generator the lease lasts until the generator ends. The lease is portable unless the request says
   * otherwise, because only such a lease can give rates back.
   */
  async run<T>(
    request: RemoteRequest<L> & RunOptions,
    work: (lease: RemoteLease<L>) => T | Promise<T>,
    options: RunOptions = {},
  ): Promise<T> {
    const { onThrow: asked = 'rollback', ...ask } = request;
    const { onThrow = asked } = options;
    const decision = await this.tryAcquire({ portable: true, ...ask });
    if (!decision.granted) throw new RateLimitExceeded(decision);
    const { lease, statuses } = decision;
    const slots = new Set(statuses.filter(({ limit }) => holdsSlots(limit.kind)).map(({ limit }) => limit.name));
    // Only the statuses name the limits of a parent, and only `consumed` names unlimited ones.
    const names = new Set([...statuses.map(({ limit }) => limit.name), ...Object.keys(lease.consumed)]);
    const rates = [...names].filter((name) => !slots.has(name));
    const { leaseTtlMs } = request;
    return runUnder(lease, work, { leaseTtlMs, rates, onThrow, onError: this.#onError });
  }

  /** The statuses of the decision that the request would get now. Takes nothing. */
  async peek({ signal, ...ask }: RemoteRequest<L>): Promise<LimitStatus[]> {
    const sending = { repeatable: true, signal, member: 'statuses' } as const;
    const answer = await this.#sender.send('POST', '/v1/peek', bodyOf(ask), sending);
    return statusesOf(answer.body);
  }

  /** The state of every limit of every level. */
  async status(key: { readonly entityId: string; readonly resource: string }): Promise<LimitStatus[]> {
    return statusesOf(await this.#sender.get('/v1/status', { ...key }, 'statuses'));
  }

  /** What is available of each limit; `Infinity` where it is unlimited. */
  async available(key: { readonly entityId: string; readonly resource: string }): Promise<Record<L, number>> {
    const body = (await this.#sender.get('/v1/available', { ...key }, 'available')) as AvailableBody;
    const entries = Object.entries(body.available).map(([name, left]) => [name, left ?? Number.POSITIVE_INFINITY]);
    return Object.fromEntries(entries) as Record<L, number>;
  }

  /** Continues a lease that another process acquired. */
  resume(lease: LeaseBody & { readonly entityId: string; readonly resource: string }): RemoteLease<L> {
    return new RemoteLease<L>(this.#sender, lease, lease);
  }
}

/** JSON has no undefined: a field that is undefined is not sent. */
function bodyOf<L extends string>({ limits, ...ask }: Omit<RemoteRequest<L>, 'signal'>): AskBody {
  checkAmounts('consume', ask.consume);
  return { ...ask, limits: limits?.map(String) };
}

function granted<L extends string>(
  sender: Sender,
  request: RemoteRequest<L>,
  { lease, statuses, decidedBy }: GrantBody,
): RemoteDecision<L> {
  const handle = new RemoteLease<L>(sender, request, lease, decidedBy);
  return { granted: true, lease: handle, statuses: statuses.map(statusOf), decidedBy };
}

function denied<L extends string>(problem: ProblemBody): RemoteDecision<L> {
  const body = problem as unknown as DenialBody;
  const violations = body.violations.map(statusOf);
  const statuses = body.statuses?.map(statusOf) ?? violations;
  const { reason, retryAfterMs, decidedBy, paused } = body;
  const denial = { granted: false, reason, retryAfterMs, statuses, violations, decidedBy } as const;
  if (paused === undefined) return denial;
  return { ...denial, paused: pauseOf(paused) };
}

function pauseOf({ until, ...pause }: PauseBody): PausedBy {
  return { ...pause, until: until === null ? null : new Date(until) };
}

function statusesOf(body: unknown): LimitStatus[] {
  return (body as { readonly statuses: readonly StatusBody[] }).statuses.map(statusOf);
}

function statusOf({ limit, available, paused, ...rest }: StatusBody): LimitStatus {
  const status = { ...rest, limit: limitOf(limit), available: available ?? Number.POSITIVE_INFINITY };
  return paused === undefined ? status : { ...status, paused: pauseOf(paused) };
}

/** A newer server may know options that this client does not. An error would lose the lease of the grant. */
function limitOf({ text }: LimitBody): Limit {
  try {
    return Limit.parse(text);
  } catch {
    return Limit.parse(text.replace(/!.*/, ''));
  }
}

function warn(error: unknown, where: string): void {
  // oxlint-disable-next-line eslint/no-console -- edge runtimes have no process warnings
  console.warn(`headgate: ${where}: ${String(error)}`);
}
