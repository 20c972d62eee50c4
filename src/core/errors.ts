import type { LimitStatus } from './bucket/decide.js';
import { type ErrorCode, errorTraits } from './error-codes.js';

const BRAND = Symbol.for('headgate.error');

/** What every error of Headgate is. `code` is stable and meant for programs; the message is for people. */
export class HeadgateError<Code extends ErrorCode = ErrorCode> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }

  /** The HTTP status that a server answers with. */
  get httpStatus(): number {
    return errorTraits(this.code).http;
  }

  /** The exit code of the CLI. */
  get exitCode(): number {
    return errorTraits(this.code).exit;
  }

  /** Whether the same call can succeed later. */
  get retryable(): boolean {
    return errorTraits(this.code).retryable;
  }

  get [BRAND](): true {
    return true;
  }

  /** The code, the message and the details of its class; never the stack. */
  toJSON(): Record<string, unknown> {
    const { name, message, cause } = this;
    return {
      ...Object.fromEntries(Object.entries(this)),
      name,
      message,
      ...(cause === undefined ? {} : { cause: cause instanceof Error ? cause.message : show(cause) }),
    };
  }
}

/** Whether `error` is one of Headgate's, from whichever copy of the package, and of the code if one is given. */
export function isHeadgateError<Code extends ErrorCode = ErrorCode>(
  error: unknown,
  code?: Code,
): error is HeadgateError<Code> {
  if (typeof error !== 'object' || error === null || !(BRAND in error)) return false;
  return code === undefined || (error as HeadgateError).code === code;
}

/** A denial: which limits of which level refused, and how long to wait. */
export class RateLimitExceeded extends HeadgateError<'limit.exceeded' | 'limit.impossible'> {
  readonly statuses: readonly LimitStatus[];
  readonly violations: readonly LimitStatus[];
  /** The wait after which the same ask fits, or null: it never will. */
  readonly retryAfterMs: number | null;
  readonly reason: 'exhausted' | 'contended' | 'impossible';
  /** Who refused: `fallback` while the store was out. */
  readonly decidedBy: string;

  constructor(denial: {
    readonly statuses: readonly LimitStatus[];
    readonly violations: readonly LimitStatus[];
    readonly retryAfterMs: number | null;
    readonly reason: 'exhausted' | 'contended' | 'impossible';
    readonly decidedBy: string;
  }) {
    super(denial.reason === 'impossible' ? 'limit.impossible' : 'limit.exceeded', describeDenial(denial));
    this.statuses = denial.statuses;
    this.violations = denial.violations;
    this.retryAfterMs = denial.retryAfterMs;
    this.reason = denial.reason;
    this.decidedBy = denial.decidedBy;
  }

  /** The value of an HTTP `Retry-After` header in whole seconds, rounded up; null when waiting does not help. */
  get retryAfterHeader(): string | null {
    return this.retryAfterMs === null ? null : String(Math.max(1, Math.ceil(this.retryAfterMs / 1000)));
  }
}

function describeDenial(denial: {
  readonly violations: readonly LimitStatus[];
  readonly retryAfterMs: number | null;
  readonly reason: string;
}): string {
  const causes = denial.violations.map(
    (v) => `${String(v.limit)} of ${v.entityId} on ${v.resource} has ${v.available} left, ${v.requested} asked`,
  );
  const subject = causes.length > 0 ? causes.join('; ') : 'too many writers at once';
  const advice =
    denial.retryAfterMs === null
      ? 'waiting does not help: it is more than the limit can ever hold'
      : `retry in ${denial.retryAfterMs} ms`;
  return `Rate limit exceeded: ${subject}; ${advice}`;
}

/** Input that was refused before anything was written. */
export class ValidationError extends HeadgateError<'input.invalid'> {
  readonly field: string;
  readonly expected: string;
  readonly got: string;

  /** `more`: how many further problems the same input has. */
  constructor(field: string, expected: string, got: unknown, more = 0) {
    const shown = show(got);
    super('input.invalid', `Expected \`${field}\` to be ${expected}, got ${shown}${andMore(more)}`);
    this.field = field;
    this.expected = expected;
    this.got = shown;
  }
}

function andMore(problems: number): string {
  return problems === 0 ? '' : ` (and ${problems} more ${problems === 1 ? 'problem' : 'problems'})`;
}

const SHOWN_CHARACTERS = 120;

function show(value: unknown): string {
  let text: string | undefined;
  try {
    const asJson = typeof value === 'string' || (typeof value === 'object' && value !== null);
    // oxlint-disable-next-line typescript/no-base-to-string -- what is left are numbers, symbols, functions and the like
    text = asJson ? JSON.stringify(value) : String(value);
  } catch {
    // Circular, or with a bigint inside.
  }
  // An object whose toJSON gives undefined has no text either.
  text ??= Object.prototype.toString.call(value);
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}… (${text.length} characters)`;
}

/** No level, from entity to code, has limits for this entity and resource. */
export class LimitsNotConfigured extends HeadgateError<'limits.missing'> {
  readonly entityId: string;
  readonly resource: string;

  constructor(entityId: string, resource: string) {
    super(
      'limits.missing',
      `No limits for entity ${entityId} on resource ${resource}: set them with limiter.config, or give \`limits\` to RateLimiter.open`,
    );
    this.entityId = entityId;
    this.resource = resource;
  }
}

/** The lease was committed, rolled back or lost before this call. */
export class LeaseClosed extends HeadgateError<'lease.closed'> {
  readonly leaseId: string;
  readonly state: string;

  constructor(leaseId: string, state: string, attempted: string) {
    super('lease.closed', `Cannot ${attempted} lease ${leaseId}: it is ${state}`);
    this.leaseId = leaseId;
    this.state = state;
  }
}

export class EntityNotFound extends HeadgateError<'entity.missing'> {
  readonly entityId: string;

  constructor(entityId: string) {
    super('entity.missing', `Entity ${entityId} does not exist`);
    this.entityId = entityId;
  }
}

export class EntityExists extends HeadgateError<'entity.exists'> {
  readonly entityId: string;

  constructor(entityId: string) {
    super('entity.exists', `Entity ${entityId} exists already`);
    this.entityId = entityId;
  }
}

export class VersionConflict extends HeadgateError<'entity.conflict'> {
  readonly entityId: string;

  constructor(entityId: string, why: string) {
    super('entity.conflict', `Entity ${entityId} was not changed: ${why}`);
    this.entityId = entityId;
  }
}

const NAMESPACE_STATES = {
  unregistered: 'is not registered: limiter.namespaces.register creates it',
  'unknown-id': 'is the id of no namespace',
  deleted: 'is deleted',
  purging: 'is purging',
} as const;

export class NamespaceNotFound extends HeadgateError<'namespace.missing'> {
  readonly namespace: string;
  readonly state: keyof typeof NAMESPACE_STATES;

  constructor(namespace: string, state: keyof typeof NAMESPACE_STATES = 'unregistered') {
    super('namespace.missing', `Namespace ${namespace} ${NAMESPACE_STATES[state]}`);
    this.namespace = namespace;
    this.state = state;
  }
}

export class NamespaceConflict extends HeadgateError<'namespace.conflict'> {
  readonly namespace: string;

  constructor(namespace: string, why: string) {
    super('namespace.conflict', `Namespace ${namespace} ${why}`);
    this.namespace = namespace;
  }
}

/** Part of a manifest was applied before a change failed. What was done is on record: applying again does the rest. */
export class ApplyStopped extends HeadgateError {
  readonly applied: number;
  readonly total: number;

  /** `cause` is why, and gives the code; `what` is the change that failed. */
  constructor(cause: HeadgateError, what: string, { applied, total }: { applied: number; total: number }) {
    const done = `${applied} of ${total} changes were applied, then ${what} failed`;
    super(cause.code, `${done}: ${cause.message}. Apply again to do the rest`, { cause });
    this.applied = applied;
    this.total = total;
  }
}

/** The store was written by another version. `command` is what helps. */
export class SchemaMismatch extends HeadgateError<'schema.mismatch'> {
  readonly command: string;

  constructor(message: string, command: string, options?: { readonly cause?: unknown }) {
    super('schema.mismatch', `${message}. Run: ${command}`, options);
    this.command = command;
  }
}

/** Why the store did not answer. Throttling and contention say that it lives, so they do not open the breaker. */
export type UnavailableKind =
  | 'timeout'
  | 'connection'
  | 'server'
  | 'throttled'
  | 'contended'
  | 'breaker-open'
  | 'closed';

/** The store did not answer in time, or not usefully. */
export class BackendUnavailable extends HeadgateError<'backend.unavailable'> {
  readonly kind: UnavailableKind;

  constructor(message: string, kind: UnavailableKind, options?: { readonly cause?: unknown }) {
    super('backend.unavailable', message, options);
    this.kind = kind;
  }
}

export class AccessDenied extends HeadgateError<'backend.denied'> {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super('backend.denied', message, options);
  }
}

export class InfrastructureError extends HeadgateError<`infrastructure.${string}`> {
  readonly #retryable: boolean;

  constructor(
    code: `infrastructure.${string}`,
    message: string,
    options?: { readonly cause?: unknown; readonly retryable?: boolean },
  ) {
    super(code, message, options);
    this.#retryable = options?.retryable ?? false;
  }

  override get retryable(): boolean {
    return this.#retryable;
  }
}
