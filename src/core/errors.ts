import { type ErrorCode, errorTraits } from './error-codes.js';

const BRAND = Symbol.for('headgate.error');

/** The class of every Headgate error. `code` is stable and meant for programs; the message is for people. */
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

/** Whether `error` is a Headgate error, also from another copy of the package, and has the code if one is given. */
export function isHeadgateError<Code extends ErrorCode = ErrorCode>(
  error: unknown,
  code?: Code,
): error is HeadgateError<Code> {
  if (typeof error !== 'object' || error === null || !(BRAND in error)) return false;
  return code === undefined || (error as HeadgateError).code === code;
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
    // oxlint-disable-next-line typescript/no-base-to-string -- only numbers, symbols, functions and other values without fields get here
    text = asJson ? JSON.stringify(value) : String(value);
  } catch {
    // The value is circular or contains a bigint.
  }
  // `JSON.stringify` returns undefined for an object whose `toJSON` does.
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

/** The text is not a lease token of this namespace that one of the lease secrets has signed. Never contains the token. */
export class LeaseTokenInvalid extends HeadgateError<'lease.token-invalid'> {
  constructor(why: string) {
    super('lease.token-invalid', `The lease token is refused: ${why}`);
  }
}

/** The entity has no record. */
export class EntityNotFound extends HeadgateError<'entity.missing'> {
  readonly entityId: string;

  constructor(entityId: string) {
    super('entity.missing', `Entity ${entityId} does not exist`);
    this.entityId = entityId;
  }
}

/** The entity has a record already. */
export class EntityExists extends HeadgateError<'entity.exists'> {
  readonly entityId: string;

  constructor(entityId: string) {
    super('entity.exists', `Entity ${entityId} exists already`);
    this.entityId = entityId;
  }
}

/** Another writer changed the entity first: read it again. */
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

/** The namespace is not registered, or is deleted or being purged. */
export class NamespaceNotFound extends HeadgateError<'namespace.missing'> {
  readonly namespace: string;
  readonly state: keyof typeof NAMESPACE_STATES;

  constructor(namespace: string, state: keyof typeof NAMESPACE_STATES = 'unregistered') {
    super('namespace.missing', `Namespace ${namespace} ${NAMESPACE_STATES[state]}`);
    this.namespace = namespace;
    this.state = state;
  }
}

/** The namespace is not in the state that the change needs. */
export class NamespaceConflict extends HeadgateError<'namespace.conflict'> {
  readonly namespace: string;

  constructor(namespace: string, why: string) {
    super('namespace.conflict', `Namespace ${namespace} ${why}`);
    this.namespace = namespace;
  }
}

/** Part of a manifest was applied before a change failed. The applied changes are recorded: applying again makes the others. */
export class ApplyStopped extends HeadgateError {
  readonly applied: number;
  readonly total: number;

  /** `cause` gives the code; `what` describes the change that failed. */
  constructor(cause: HeadgateError, what: string, { applied, total }: { applied: number; total: number }) {
    const done = `${applied} of ${total} changes were applied, then ${what} failed`;
    super(cause.code, `${done}: ${cause.message}. Apply again to do the rest`, { cause });
    this.applied = applied;
    this.total = total;
  }
}

/** The store was written by another version. Running `command` solves that. */
export class SchemaMismatch extends HeadgateError<'schema.mismatch'> {
  readonly command: string;

  constructor(message: string, command: string, options?: { readonly cause?: unknown }) {
    super('schema.mismatch', `${message}. Run: ${command}`, options);
    this.command = command;
  }
}

/** Why the store did not answer. Throttling and contention show that the store works, so they do not open the breaker. */
export type UnavailableKind =
  | 'timeout'
  | 'connection'
  | 'server'
  | 'throttled'
  | 'contended'
  | 'breaker-open'
  | 'closed';

/** The store did not answer in time, or its answer could not be used. */
export class BackendUnavailable extends HeadgateError<'backend.unavailable'> {
  readonly kind: UnavailableKind;

  constructor(message: string, kind: UnavailableKind, options?: { readonly cause?: unknown }) {
    super('backend.unavailable', message, options);
    this.kind = kind;
  }
}

/** How the store was unavailable; null for other errors. Stores may come from another copy of the package. */
export function unavailableKind(error: unknown): UnavailableKind | null {
  return isHeadgateError(error, 'backend.unavailable') ? (error as BackendUnavailable).kind : null;
}

/** The store refused the credentials or the permissions. */
export class AccessDenied extends HeadgateError<'backend.denied'> {
  constructor(message: string, options?: { readonly cause?: unknown }) {
    super('backend.denied', message, options);
  }
}

/** What surrounds the limiter is missing or failed: a table, a stack, a file, a package. */
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
