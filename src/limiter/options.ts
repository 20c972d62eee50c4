import { type Clock, completeClock, systemClock } from '../clock.js';
import { ON_UNAVAILABLE, type OnUnavailable } from '../core/config/config.js';
import { ValidationError } from '../core/errors.js';
import { checkNamespace } from '../core/identifiers.js';
import { checkKnownFields } from '../core/known-fields.js';
import { checkLimits, checkWhole, type Limit } from '../core/limit.js';
import { warnOfError } from './warn-of-error.js';
import type { DecisionEvent } from './acquire/decision-event.js';
import type { LimiterEvent } from './events/limiter-event.js';

const MIN_LEASE_TTL_MS = 5_000;
const MAX_LEASE_TTL_MS = 7 * 86_400_000;
const MIN_SECRET = 16;
const MAX_MS = 86_400_000;

/** Options of `RateLimiter.open` and `new RateLimiter`. */
export interface LimiterOptions<L extends string = string> {
  /** The lowest level of configuration: used where the store has no limits. The compiler checks their names in requests. */
  readonly limits?: readonly Limit<L>[];
  /** The tenant. Default: `HEADGATE_NAMESPACE`, else `default`. */
  readonly namespace?: string;
  /** Who makes administrative changes, for the audit. Default: `HEADGATE_PRINCIPAL`. */
  readonly principal?: string;
  /** Who holds leases, as `leases.list` shows it. */
  readonly caller?: string;
  /**
   * When a holder expires unless it is extended. From 5,000 to 604,800,000 (7 days). Default: `HEADGATE_LEASE_TTL_MS`,
   * else 60,000.
   */
  readonly leaseTtlMs?: number;
  /**
   * The secrets of lease tokens: the first signs, and a token of either is accepted, so that a secret can be replaced
   * without losing leases. At least 16 characters each. Default: `HEADGATE_LEASE_SECRET` and
   * `HEADGATE_LEASE_SECRET_PREVIOUS`.
   */
  readonly leaseSecrets?: readonly [current: string, previous?: string | undefined];
  /** Whether the rate tokens of an expired holder stay taken (`keep`) or are given back (`refund`). Default: `keep`. */
  readonly onExpiry?: 'keep' | 'refund';
  /** What an acquire does while the store does not answer. Overrides the stored system config. Default: `block`. */
  readonly onUnavailable?: OnUnavailable;
  readonly timeouts?: {
    /** The longest time for one call to the store. Default: 1,000. */
    readonly callMs?: number;
    /**
     * The longest time for one acquire, including the read of its config, excluding the wait for tokens. Applies also to
     * `status`, `available`, `timeUntilAvailable` and `peek`. Default: 2,000.
     */
    readonly acquireMs?: number;
    /** How long `RateLimiter.open` retries under the policy `block` while the store does not answer. Default: 10,000. */
    readonly openMs?: number;
  };
  /** How many writes may lose against other writers before a denial as `contended`. Default: `HEADGATE_MAX_RETRIES`, else 5. */
  readonly maxRetries?: number;
  /** How long configuration is cached. Default: 60,000. */
  readonly configCacheMs?: number;
  /** How long a store over a network may deny from a cached balance. Default: 1,000. */
  readonly denyCacheMs?: number;
  /** An idle bucket is kept for this many times its longest fill time. Default: 7. */
  readonly bucketLifeFactor?: number;
  /** The source of time. Default: the system clock. */
  readonly clock?: Clock;
  /** Called with failures that no caller awaits. Default: a process warning. */
  readonly onError?: (error: unknown, where: string) => void;
  /** Called with every decision. */
  readonly onDecision?: (event: DecisionEvent) => void;
  /** Called with decisions, ends of leases, pauses, outages, changes of config, splits and merges. */
  readonly onEvent?: (event: LimiterEvent) => void;
}

export interface ResolvedOptions {
  readonly limits: readonly Limit[];
  readonly namespace: string;
  readonly principal: string | null;
  readonly caller: string | null;
  readonly leaseTtlMs: number;
  readonly leaseSecrets: readonly string[];
  readonly onExpiry: 'keep' | 'refund';
  readonly onUnavailable: OnUnavailable | null;
  readonly timeouts: { readonly callMs: number; readonly acquireMs: number; readonly openMs: number };
  readonly maxRetries: number;
  readonly configCacheMs: number;
  readonly denyCacheMs: number;
  readonly bucketLifeFactor: number;
  readonly clock: Required<Clock>;
  readonly onError: (error: unknown, where: string) => void;
  readonly onDecision: ((event: DecisionEvent) => void) | null;
  readonly onEvent: ((event: LimiterEvent) => void) | null;
}

const defaults: ResolvedOptions = {
  limits: [],
  namespace: 'default',
  principal: null,
  caller: null,
  leaseTtlMs: 60_000,
  leaseSecrets: [],
  onExpiry: 'keep',
  onUnavailable: null,
  timeouts: { callMs: 1_000, acquireMs: 2_000, openMs: 10_000 },
  maxRetries: 5,
  configCacheMs: 60_000,
  denyCacheMs: 1_000,
  bucketLifeFactor: 7,
  clock: systemClock,
  onError: warnOfError,
  onDecision: null,
  onEvent: null,
};

const OPTION_FIELDS: ReadonlySet<string> = new Set(Object.keys(defaults));
const TIMEOUT_FIELDS: ReadonlySet<string> = new Set(Object.keys(defaults.timeouts));

type Environment = Readonly<Record<string, string | undefined>>;

/** The checked options. Precedence: options, the namespace of the address, environment, defaults. */
export function resolveOptions(options: LimiterOptions, env: Environment, namespace?: string): ResolvedOptions {
  checkObject('options', options);
  checkObject('timeouts', options.timeouts ?? {});
  checkKnownFields('options', options, OPTION_FIELDS);
  checkKnownFields('timeouts', options.timeouts ?? {}, TIMEOUT_FIELDS);
  for (const name of LISTENERS) checkFunction(name, options[name] ?? undefined);
  if (options.clock !== undefined) checkClock(options.clock);
  const fromEnv = readEnvironment(env);
  const { leaseSecrets, ...others } = options;
  const resolved: ResolvedOptions = {
    ...defaults,
    ...fromEnv,
    ...(namespace === undefined ? {} : { namespace }),
    ...withoutUndefined(others),
    ...(leaseSecrets === undefined ? {} : { leaseSecrets: readSecrets(leaseSecrets) }),
    timeouts: { ...defaults.timeouts, ...withoutUndefined(options.timeouts ?? {}) },
    clock: completeClock(options.clock ?? defaults.clock),
  };
  checkLimits('limits', resolved.limits);
  checkNamespace(resolved.namespace);
  checkText('principal', resolved.principal);
  checkText('caller', resolved.caller);
  checkLeaseTtl(resolved.leaseTtlMs);
  checkSecrets(leaseSecrets === undefined ? 'HEADGATE_LEASE_SECRET' : 'leaseSecrets', resolved.leaseSecrets);
  checkOneOf('onExpiry', resolved.onExpiry, ['keep', 'refund']);
  if (resolved.onUnavailable !== null) checkOneOf('onUnavailable', resolved.onUnavailable, ON_UNAVAILABLE);
  checkWhole('timeouts.callMs', resolved.timeouts.callMs, 1, MAX_MS);
  checkWhole('timeouts.acquireMs', resolved.timeouts.acquireMs, 1, MAX_MS);
  checkWhole('timeouts.openMs', resolved.timeouts.openMs, 1, MAX_MS);
  checkWhole('maxRetries', resolved.maxRetries, 0, 100);
  checkWhole('configCacheMs', resolved.configCacheMs, 0, MAX_MS);
  checkWhole('denyCacheMs', resolved.denyCacheMs, 0, MAX_MS);
  checkWhole('bucketLifeFactor', resolved.bucketLifeFactor, 1, 1_000);
  return resolved;
}

function readEnvironment(env: Environment): Partial<ResolvedOptions> {
  return withoutUndefined({
    namespace: env['HEADGATE_NAMESPACE'] || undefined,
    principal: env['HEADGATE_PRINCIPAL'] || undefined,
    leaseTtlMs: readNumber(env['HEADGATE_LEASE_TTL_MS']),
    maxRetries: readNumber(env['HEADGATE_MAX_RETRIES']),
    leaseSecrets: secretsIn(env),
  });
}

function secretsIn(env: Environment): readonly string[] | undefined {
  const secrets = [env['HEADGATE_LEASE_SECRET'], env['HEADGATE_LEASE_SECRET_PREVIOUS']].filter(Boolean);
  return secrets.length === 0 ? undefined : (secrets as string[]);
}

/** A previous secret that is `undefined` is left out, because it often comes from the environment. */
function readSecrets(secrets: unknown): readonly string[] {
  if (!Array.isArray(secrets)) throw new ValidationError('leaseSecrets', 'a list of secrets', typeof secrets);
  return secrets.filter((secret) => secret !== undefined) as readonly string[];
}

/** The message must not show a secret. */
function checkSecrets(field: string, secrets: readonly unknown[]): void {
  for (const secret of secrets) {
    if (typeof secret === 'string' && secret.length >= MIN_SECRET) continue;
    const got = typeof secret === 'string' ? `text of ${secret.length} characters` : typeof secret;
    throw new ValidationError(field, `secrets of at least ${MIN_SECRET} characters`, got);
  }
  if (secrets.length > 2) throw new ValidationError(field, 'at most two secrets', `${secrets.length} secrets`);
}

/** Text that is not a number stays text, so that the error message of the check can show it. */
function readNumber(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  return Number.isNaN(Number(text)) ? (text as unknown as number) : Number(text);
}

function withoutUndefined<T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}

/** A listener that is no function would fail when something was taken already. */
const LISTENERS = ['onError', 'onDecision', 'onEvent'] as const;

function checkFunction(field: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') throw new ValidationError(field, 'a function', value);
}

function checkClock(clock: unknown): void {
  checkObject('clock', clock);
  const { now, sleep } = clock as Partial<Clock>;
  checkFunction('clock.now', now ?? null);
  checkFunction('clock.sleep', sleep);
}

function checkObject(field: string, value: unknown): asserts value is object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return;
  throw new ValidationError(field, 'an object', value);
}

export function checkText(field: string, value: unknown): void {
  if (value !== null && typeof value !== 'string') throw new ValidationError(field, 'a string', value);
}

export function checkOneOf(field: string, value: unknown, allowed: readonly string[]): void {
  if (allowed.includes(value as string)) return;
  throw new ValidationError(field, `one of ${allowed.map((item) => `'${item}'`).join(', ')}`, value);
}

export function checkLeaseTtl(value: unknown): asserts value is number {
  checkWhole('leaseTtlMs', value, MIN_LEASE_TTL_MS, MAX_LEASE_TTL_MS);
}
