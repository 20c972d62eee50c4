import { ValidationError } from './errors.js';

const ENTITY = /^(?!\$)[!-"$-~]{1,256}$/;
const RESOURCE = /^(?![_$])[!-"$-}]{1,128}$/;
const LIMIT = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;
const NAMESPACE = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

/** Names with a special meaning in the older table layout. */
const RESERVED_LIMITS = new Set(['wcu']);

/** The longest name of an entity, which is shown to people: with it an item of DynamoDB stays far below its largest size. */
export const MAX_ENTITY_NAME = 256;

export function checkEntityId(value: unknown, field = 'entityId'): asserts value is string {
  if (typeof value === 'string' && ENTITY.test(value)) return;
  throw new ValidationError(
    field,
    'an entity id: 1 to 256 printable ASCII characters without "#" or space, not starting with "$"',
    value,
  );
}

export function checkResource(value: unknown, field = 'resource'): asserts value is string {
  if (typeof value === 'string' && RESOURCE.test(value)) return;
  throw new ValidationError(
    field,
    'a resource name: 1 to 128 printable ASCII characters without "#", "~" or space, not starting with "_" or "$"',
    value,
  );
}

export function checkLimitName(value: unknown, field = 'limit.name'): asserts value is string {
  if (typeof value === 'string' && LIMIT.test(value) && !RESERVED_LIMITS.has(value)) return;
  throw new ValidationError(
    field,
    'a limit name: a letter, then up to 63 letters, digits, "_", "." or "-" ("wcu" is reserved)',
    value,
  );
}

export function checkNamespace(value: unknown, field = 'namespace'): asserts value is string {
  if (typeof value === 'string' && NAMESPACE.test(value)) return;
  throw new ValidationError(
    field,
    'a namespace name: a letter or digit, then up to 63 letters, digits, "_", "." or "-"',
    value,
  );
}

/** The unique key of a bucket in its namespace. Unambiguous, because neither name may contain "#". */
export function buildBucketKey(entityId: string, resource: string): string {
  return `${entityId}#${resource}`;
}

export function parseBucketKey(key: string): { readonly entityId: string; readonly resource: string } {
  const cut = key.indexOf('#');
  return { entityId: key.slice(0, cut), resource: key.slice(cut + 1) };
}

/** The key part of a bucket of per-call limits. Unambiguous, because no resource name contains "~". */
export function buildOwnLimitsResource(resource: string, limitsText: string): string {
  return `${resource}~${hash8(limitsText)}`;
}

/**
 * The 11-character id of the namespace that a new store starts with. It depends on the name only: when several processes
 * find no file, each must know the id before one of them creates the file. Registered namespaces have random ids.
 */
export function buildFirstNamespaceId(name: string): string {
  return `0${hash8(name)}${hash8(`first ${name}`).slice(0, 2)}`;
}

/** Accepts the resource of a bucket: a resource name, optionally followed by the hash of per-call limits. */
export function checkBucketResource(value: unknown): asserts value is string {
  const plain = typeof value === 'string' ? value.replace(/~[0-9A-Za-z_~]{8}$/, '') : value;
  checkResource(plain);
}

/** The plain resource name, which usage records use. */
export function parsePlainResource(keyPart: string): string {
  const cut = keyPart.indexOf('~');
  return cut < 0 ? keyPart : keyPart.slice(0, cut);
}

/** 64 characters in the order of their codes, so that encoded numbers sort as text. None needs escaping in a URL. */
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~';

/** 8 characters for the time, which sort by time as text, and 3 characters from `random` (0 <= random < 1). */
export function buildLeaseId(nowMs: number, random: number): string {
  return encode64(Math.max(0, nowMs), 8) + encodeRandom(random);
}

/** 3 characters from `random` (0 <= random < 1). */
export function encodeRandom(random: number): string {
  return encode64(Math.floor(random * 64 ** 3), 3);
}

/** The time that a lease id contains. */
export function parseLeaseTime(leaseId: string): number {
  let value = 0;
  for (let at = 0; at < 8; at++) value = value * 64 + Math.max(0, ALPHABET.indexOf(leaseId.charAt(at)));
  return value;
}

function encode64(value: number, length: number): string {
  let text = '';
  let rest = value;
  for (let digit = 0; digit < length; digit++) {
    text = ALPHABET.charAt(rest % 64) + text;
    rest = Math.floor(rest / 64);
  }
  return text;
}

/** One of 16 digits, to spread names over 16 partitions. */
export function hashDigit(name: string): string {
  return (ALPHABET.indexOf(hash8(name).charAt(3)) % 16).toString(16);
}

/** 48 bits of a non-cryptographic hash (two FNV-1a lanes). It distinguishes a small number of names; it gives no security. */
function hash8(text: string): string {
  let low = 0x811c9dc5;
  let high = 0x9dc5811c;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    low = Math.imul(low ^ unit, 0x01000193);
    high = Math.imul(high ^ (unit + at), 0x85ebca6b);
  }
  return encode64((low >>> 0) & 0xffffff, 4) + encode64((high >>> 0) & 0xffffff, 4);
}
