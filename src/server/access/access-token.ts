import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { ValidationError } from '../../core/errors.js';
import { checkNamespace } from '../../core/identifiers.js';
import { checkKnownFields } from '../../core/known-fields.js';

/** `app`: asks and settles. `admin`: also reads and changes limits, entities and leases. */
export type Role = 'app' | 'admin';

/** A token as it is stored. The secret itself is not stored anywhere. */
export interface AccessToken {
  /** Who uses it. It becomes the principal of the changes that it makes. */
  readonly name: string;
  readonly role: Role;
  /** The one namespace that it reaches; `*`: every namespace. */
  readonly namespace: string;
  /** Left out: every entity. An entity is covered if its id begins with the prefix. */
  readonly entityPrefix?: string;
  /**
   * Whether a token with a prefix may send limits and an outage policy of its own, which replace those of the configuration.
   * A token without a prefix may in any case: it belongs to a service that reaches every entity.
   */
  readonly ownLimits?: boolean;
  /** SHA-256 of the secret, in hex. */
  readonly sha256: string;
}

export const EVERY_NAMESPACE = '*';

const TOKEN_FIELDS: ReadonlySet<string> = new Set(['name', 'role', 'namespace', 'entityPrefix', 'ownLimits', 'sha256']);

/** Printed instead of a value that may be a secret in the wrong place. */
const HIDDEN = '(hidden: it may be a secret)';

/** A new secret. The prefix lets scanners for leaked secrets find it. */
export function createSecret(): string {
  return `hg_${randomBytes(32).toString('base64url')}`;
}

/** The hash of a secret, as a token file has it. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** The tokens of a server. */
export class AccessTokens {
  readonly #tokens: readonly { readonly token: AccessToken; readonly hash: Buffer }[];

  constructor(tokens: readonly AccessToken[]) {
    this.#tokens = tokens.map((token) => ({ token, hash: Buffer.from(token.sha256, 'hex') }));
  }

  get size(): number {
    return this.#tokens.length;
  }

  /** Compares hashes of equal length with every stored one: the time tells neither the secret nor its position. */
  find(secret: string): AccessToken | null {
    const hash = createHash('sha256').update(secret).digest();
    let found: AccessToken | null = null;
    for (const known of this.#tokens) if (timingSafeEqual(hash, known.hash)) found = known.token;
    return found;
  }
}

/** Whether a token reaches the namespace. */
export function coversNamespace({ namespace }: AccessToken, asked: string): boolean {
  return namespace === EVERY_NAMESPACE || namespace === asked;
}

/** Whether a token reaches the entity. */
export function coversEntity({ entityPrefix = '' }: AccessToken, entityId: string): boolean {
  return entityId.startsWith(entityPrefix);
}

/** Whether requests with the token may replace the configured limits and the outage policy. */
export function mayOverride({ entityPrefix, ownLimits = false }: AccessToken): boolean {
  return entityPrefix === undefined || ownLimits;
}

/** Reads the JSON of a token file or of `HEADGATE_TOKENS`: a list of tokens, each with the hash of its secret. */
export function parseTokens(text: string, source: string): readonly AccessToken[] {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    throw new ValidationError(source, 'JSON: a list of tokens', HIDDEN);
  }
  return checkTokens(list, source);
}

/** The tokens of a list that comes from a file, a variable or code. What is wrong with one would make it cover too much. */
export function checkTokens(list: unknown, source: string): readonly AccessToken[] {
  if (!Array.isArray(list)) throw new ValidationError(source, 'a list of tokens', HIDDEN);
  const tokens = list.map((entry: unknown, at) => checkToken(`${source}[${at}]`, entry));
  const names = new Set(tokens.map(({ name }) => name));
  if (names.size !== tokens.length) throw new ValidationError(source, 'tokens with different names', [...names]);
  refuseSharedSecret(tokens, source);
  return tokens;
}

/** The secret would have the role of one of the two tokens, and the other would be ignored. */
function refuseSharedSecret(tokens: readonly AccessToken[], source: string): void {
  const owners = new Map<string, string>();
  for (const [at, { name, sha256 }] of tokens.entries()) {
    const owner = owners.get(sha256);
    if (owner !== undefined) {
      throw new ValidationError(`${source}[${at}].sha256`, `different from that of ${owner}`, 'the same');
    }
    owners.set(sha256, name);
  }
}

/** It is shown in lists, logs and the audit. */
const NAME = /^[^\p{Cc}\p{Zl}\p{Zp}]{1,64}$/u;

function checkToken(field: string, value: unknown): AccessToken {
  if (typeof value !== 'object' || value === null) throw new ValidationError(field, 'a token', HIDDEN);
  checkKnownFields(field, value, TOKEN_FIELDS);
  const { name, role, namespace, entityPrefix, ownLimits, sha256 } = value as Record<keyof AccessToken, unknown>;
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new ValidationError(`${field}.name`, 'a string of 1 to 64 characters in one line', name);
  }
  if (role !== 'app' && role !== 'admin') throw new ValidationError(`${field}.role`, `'app' or 'admin'`, role);
  if (namespace !== EVERY_NAMESPACE) checkNamespace(namespace);
  // An empty prefix would cover every entity: most likely a variable of a shell was not set.
  const isPrefix = typeof entityPrefix === 'string' && entityPrefix !== '' && role === 'app';
  if ('entityPrefix' in value && !isPrefix) {
    const expected =
      role === 'app' ? 'text that is not empty' : 'left out: a token of the role admin reaches every entity';
    throw new ValidationError(`${field}.entityPrefix`, expected, entityPrefix);
  }
  if (ownLimits !== undefined && !(typeof ownLimits === 'boolean' && isPrefix)) {
    throw new ValidationError(`${field}.ownLimits`, 'true or false, with an entityPrefix only', ownLimits);
  }
  if (typeof sha256 !== 'string' || !/^[0-9a-f]{64}$/.test(sha256)) {
    throw new ValidationError(`${field}.sha256`, '64 hex digits', HIDDEN);
  }
  return {
    name,
    role,
    namespace,
    sha256,
    ...(isPrefix ? { entityPrefix } : {}),
    ...(ownLimits === true ? { ownLimits } : {}),
  };
}
