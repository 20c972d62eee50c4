import { createHmac, timingSafeEqual } from 'node:crypto';
import type { GrantLocation, LevelRef } from '../../backend.js';
import type { Amount } from '../../core/bucket/decide.js';
import { LeaseTokenInvalid, ValidationError } from '../../core/errors.js';
import { toInt } from '../../core/int.js';
import { Limit } from '../../core/limit.js';

/** One level of a portable lease, as its token names it. */
export interface TokenLevel extends LevelRef {
  /** What the acquire took from rates, unlimited limits and slots. */
  readonly granted: readonly Amount[];
  /** Shadows that were short and of which nothing was taken. Corrections of them change nothing. Left out: none. */
  readonly untaken?: ReadonlySet<string>;
  /** Whether an expiry gives the rates back. */
  readonly refunds: boolean;
  readonly place: GrantLocation;
}

/** What a token says. The state of the lease is not in it: it is in the holders. */
export interface TokenContent {
  readonly namespaceId: string;
  readonly leaseId: string;
  /** What `extend` uses by default. */
  readonly ttlMs: number;
  readonly levels: readonly TokenLevel[];
}

/** The kind and the version of the format. */
const PREFIX = 'hgl1';

/** Positions and not names, because a token travels in headers and messages. */
type StoredContent = readonly [
  namespaceId: string,
  leaseId: string,
  ttlMs: number,
  levels: readonly (readonly [
    entityId: string,
    resource: string,
    limits: readonly string[],
    sequence: number,
    openedAtMs: number,
    flags: number,
    granted: readonly (readonly [name: string, milli: string])[],
    place: GrantLocation,
    untaken?: readonly string[],
  ])[],
];

const LASTING = 1;
const REFUNDS = 2;

/**
 * `hgl1.{content}.{signature}`, both parts in base64url. Throws if there is no secret, or no content: only a portable lease
 * has one.
 */
export function buildLeaseToken(content: TokenContent | undefined, secrets: readonly string[]): string {
  requireSecrets(secrets);
  if (content === undefined) {
    const expected = 'true in the request of a lease that the store has granted: only such a lease has a token';
    throw new ValidationError('portable', expected, false);
  }
  return signText(`${PREFIX}.${Buffer.from(JSON.stringify(encode(content))).toString('base64url')}`, secrets);
}

/** `{text}.{signature}`, by the first secret. */
export function signText(text: string, secrets: readonly string[]): string {
  const [secret] = requireSecrets(secrets);
  return `${text}.${signatureOf(text, secret as string)}`;
}

/** The text that was signed with any of the secrets. Throws if it was altered. */
export function readSignedText(token: string, secrets: readonly string[]): string {
  const cut = token.lastIndexOf('.');
  const [text, signature] = [token.slice(0, cut), token.slice(cut + 1)];
  if (secrets.some((secret) => isSame(signature, signatureOf(text, secret)))) return text;
  throw new LeaseTokenInvalid('it was altered, or signed with another secret');
}

/** Accepts the signature of any of the secrets. Nothing of the content is read before its signature is checked. */
export function parseLeaseToken(token: unknown, secrets: readonly string[]): TokenContent {
  requireSecrets(secrets);
  if (typeof token !== 'string') throw new LeaseTokenInvalid('it is not text');
  const cut = token.lastIndexOf('.');
  const signed = token.slice(0, cut);
  const [prefix, content, ...rest] = signed.split('.');
  if (cut < 0 || prefix !== PREFIX || content === undefined || rest.length > 0) {
    throw new LeaseTokenInvalid('it does not have the format of a token');
  }
  readSignedText(token, secrets);
  return decode(JSON.parse(Buffer.from(content, 'base64url').toString()) as StoredContent);
}

function requireSecrets(secrets: readonly string[]): readonly string[] {
  if (secrets.length > 0) return secrets;
  const expected = 'a list of one or two secrets, or HEADGATE_LEASE_SECRET to be set: lease tokens are signed with it';
  throw new ValidationError('leaseSecrets', expected, undefined);
}

function signatureOf(signed: string, secret: string): string {
  return createHmac('sha256', secret).update(signed).digest('base64url');
}

/** Compares the text, because several texts of base64url decode to the same bytes. */
function isSame(signature: string, expected: string): boolean {
  const [a, b] = [Buffer.from(signature), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function encode({ namespaceId, leaseId, ttlMs, levels }: TokenContent): StoredContent {
  return [
    namespaceId,
    leaseId,
    ttlMs,
    levels.map(({ entityId, resource, limits, version, lasting, refunds, granted, place, untaken }) => [
      entityId,
      resource,
      limits.map(String),
      version.sequence,
      version.openedAtMs,
      (lasting === true ? LASTING : 0) + (refunds ? REFUNDS : 0),
      granted.map(({ name, milli }) => [name, String(milli)] as const),
      place ?? null,
      ...(untaken === undefined ? ([] as const) : ([[...untaken]] as const)),
    ]),
  ];
}

function decode([namespaceId, leaseId, ttlMs, levels]: StoredContent): TokenContent {
  return {
    namespaceId,
    leaseId,
    ttlMs,
    levels: levels.map(([entityId, resource, limits, sequence, openedAtMs, flags, granted, place, untaken]) => ({
      entityId,
      resource,
      limits: limits.map((text) => Limit.parse(text)),
      version: { sequence, openedAtMs },
      lasting: (flags & LASTING) !== 0,
      refunds: (flags & REFUNDS) !== 0,
      granted: granted.map(([name, milli]) => ({ name, milli: toInt(BigInt(milli)) })),
      place: place ?? undefined,
      ...(untaken === undefined ? {} : { untaken: new Set(untaken) }),
    })),
  };
}
