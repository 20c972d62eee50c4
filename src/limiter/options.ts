import { type Clock, completeClock, systemClock } from '../clock.js';
import { ON_UNAVAILABLE, type OnUnavailable } from '../core/config/config.js';
import { ValidationError } from '../core/errors.js';
import { checkNamespace } from '../core/identifiers.js';
import { checkKnownFields } from '../core/known-fields.js';
import { checkLimits, checkWhole, type Limit } from '../core/limit.js';
import type { DecisionEvent } from './acquire/decision-event.js';

const MIN_LEASE_TTL_MS = 5_000;
const MAX_LEASE_TTL_MS = 7 * 86_400_000;
const MAX_MS = 86_400_000;

export interface LimiterOptions<L extends string = string> {
  /** The lowest level of configuration: used where the store has no limits. Their names are checked by the compiler. */
  readonly limits?: readonly Limit<L>[];
  /** The tenant. `HEADGATE_NAMESPACE`, else `default`. */
  readonly namespace?: string;
  /** Who makes administrative changes, for the audit. `HEADGATE_PRINCIPAL`. */
  readonly principal?: string;
  /** Who holds leases: shown by `leases.list`. */
  readonly caller?: string;
  /** How long a holder lives unless it is extended. `HEADGATE_LEASE_TTL_MS`, else 60 000; at least 5 000. */
  readonly leaseTtlMs?: number;
  /** What becomes of the rate tokens of a holder that expired: kept (default), or given back. */
  readonly onExpiry?: 'keep' | 'refund';
  /** What an acquire does while the store is out; overrides the stored system config. Else `block`. */
  readonly onUnavailable?: OnUnavailable;
  readonly timeouts?: {
    /** Longest time for one call of the store: 1 000. */
    readonly callMs?: number;
    /** Longest time for one acquire, with the reading of its config, without waiting for tokens: 2 000. Also for `status` and its kin. */
    readonly acquireMs?: number;
    /** How long `RateLimiter.open` tries while the store is out, under the policy `block`: 10 000. */
    readonly openMs?: number;
  };
  /** Attempts against other writers before `contended`, on stores that can collide. `HEADGATE_MAX_RETRIES`, else 5. */
  readonly maxRetries?: number;
  /** How long configuration is remembered: 60 000. */
  readonly configCacheMs?: number;
  /** How long a store over a network remembers a balance to deny from: 1 000. */
  readonly denyCacheMs?: number;
  /** How many times its longest fill time an idle bucket is kept: 7. */
  readonly bucketLifeFactor?: number;
  /** Where time comes from: the system's clock. */
  readonly clock?: Clock;
  /** Hears of failures that no caller awaits. A process warning unless given. */
  readonly onError?: (error: unknown, where: string) => void;
  /** Hears of every decision. */
  readonly onDecision?: (event: DecisionEvent) => void;
}

export interface ResolvedOptions {
  readonly limits: readonly Limit[];
  readonly namespace: string;
  readonly principal: string | null;
  readonly caller: string | null;
  readonly leaseTtlMs: number;
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
}

const defaults: ResolvedOptions = {
  limits: [],
  namespace: 'default',
  principal: null,
  caller: null,
  leaseTtlMs: 60_000,
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
};

const OPTION_FIELDS: ReadonlySet<string> = new Set(Object.keys(defaults));
const TIMEOUT_FIELDS: ReadonlySet<string> = new Set(Object.keys(defaults.timeouts));

type Environment = Readonly<Record<string, string | undefined>>;

/** Options over the address's namespace over environment over defaults, checked. */
export function resolveOptions(options: LimiterOptions, env: Environment, namespace?: string): ResolvedOptions {
  checkKnownFields('options', options, OPTION_FIELDS);
  checkKnownFields('timeouts', options.timeouts ?? {}, TIMEOUT_FIELDS);
  const fromEnv = readEnvironment(env);
  const resolved: ResolvedOptions = {
    ...defaults,
    ...fromEnv,
    ...(namespace === undefined ? {} : { namespace }),
    ...withoutUndefined(options),
    timeouts: { ...defaults.timeouts, ...withoutUndefined(options.timeouts ?? {}) },
    clock: completeClock(options.clock ?? defaults.clock),
  };
  checkLimits('limits', resolved.limits);
  checkNamespace(resolved.namespace);
  checkText('principal', resolved.principal);
  checkText('caller', resolved.caller);
  checkLeaseTtl(resolved.leaseTtlMs);
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
  });
}

/** Text that is no number stays text, so that the check which refuses it can show it. */
function readNumber(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  return Number.isNaN(Number(text)) ? (text as unknown as number) : Number(text);
}

function withoutUndefined<T extends object>(values: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]: Exclude<T[K], undefined> };
}

function checkText(field: string, value: unknown): void {
  if (value !== null && typeof value !== 'string') throw new ValidationError(field, 'text', value);
}

export function checkOneOf(field: string, value: unknown, allowed: readonly string[]): void {
  if (allowed.includes(value as string)) return;
  throw new ValidationError(field, `one of ${allowed.map((item) => `'${item}'`).join(', ')}`, value);
}

export function checkLeaseTtl(value: unknown): asserts value is number {
  checkWhole('leaseTtlMs', value, MIN_LEASE_TTL_MS, MAX_LEASE_TTL_MS);
}

function warnOfError(error: unknown, where: string): void {
  process.emitWarning(`${where}: ${error instanceof Error ? error.message : String(error)}`, 'HeadgateWarning');
}
