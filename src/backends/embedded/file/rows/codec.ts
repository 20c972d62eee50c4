import type { Amount, Holder } from '../../../../core/bucket/decide.js';
import type { ParentAmount, PortablePart } from '../../../../core/bucket/portable.js';
import { type Int, toInt } from '../../../../core/int.js';
import { Limit } from '../../../../core/limit.js';
import type { UsageCounts } from '../../../../core/usage/usage.js';
import type { Account, Bucket } from '../../bucket.js';

/** JSON has no integers beyond 2^53, so they are stored as text. */
type StoredInt = number | string;

type StoredAccount = readonly [limit: string, tokens: StoredInt, consumed: StoredInt, folded: StoredInt];
type StoredAmount = readonly [name: string, milli: StoredInt];
type StoredHolder = readonly [
  id: string,
  expiresAtMs: number,
  acquiredAtMs: number,
  slots: readonly StoredAmount[],
  rates: readonly StoredAmount[] | null,
  caller: string | null,
  /** Only of a portable lease. */
  portable?: StoredPart,
];
type StoredPart = readonly [
  state: PortablePart['state'],
  taken: readonly StoredAmount[],
  adjusts: readonly string[],
  step?: number,
  released?: 0 | 1,
  forParents?: readonly (readonly [...amount: StoredAmount, isTotal: 0 | 1])[],
];

/** Short names, because a bucket is written with every acquire. */
interface StoredBucket {
  /** Base and hour. */
  readonly t: readonly [baseMs: number, hourMs: number];
  /** Version of the config. */
  readonly v: readonly [sequence: number, openedAtMs: number];
  /** Counters. */
  readonly n: readonly [acquires: number, expired: number, foldedAcquires: number, foldedExpired: number];
  /** Limits. */
  readonly l: readonly StoredAccount[];
  /** Limits that were removed. */
  readonly r?: readonly StoredAccount[] | undefined;
  /** Holders. */
  readonly h?: readonly StoredHolder[] | undefined;
  /** The pause. */
  readonly p?: StoredPause | undefined;
}

type StoredPause = readonly [endMs: number, reason: string];

export function encodeBucket(bucket: Bucket): string {
  const { version, holders, retired, pause } = bucket;
  // JSON leaves out what is undefined.
  const stored: StoredBucket = {
    t: [bucket.baseMs, bucket.hourMs],
    v: [version.sequence, version.openedAtMs],
    n: [bucket.acquires, bucket.expired, bucket.foldedAcquires, bucket.foldedExpired],
    l: bucket.limits.map(encodeAccount),
    r: retired.length === 0 ? undefined : retired.map(encodeAccount),
    h: holders.size === 0 ? undefined : [...holders].map(encodeHolder),
    p: pause === null ? undefined : [pause.endMs, pause.reason],
  };
  return JSON.stringify(stored);
}

export function decodeBucket(text: string): Bucket {
  const { t, v, n, l, r = [], h = [], p } = JSON.parse(text) as StoredBucket;
  return {
    home: null,
    baseMs: t[0],
    hourMs: t[1],
    version: { sequence: v[0], openedAtMs: v[1] },
    acquires: n[0],
    expired: n[1],
    foldedAcquires: n[2],
    foldedExpired: n[3],
    limits: l.map(decodeAccount),
    retired: r.map(decodeAccount),
    holders: new Map(h.map(decodeHolder)),
    pause: p === undefined ? null : { endMs: p[0], reason: p[1] },
  };
}

function encodeAccount({ limit, tokensMilli, consumedMilli, foldedMilli }: Account): StoredAccount {
  return [String(limit), encodeInt(tokensMilli), encodeInt(consumedMilli), encodeInt(foldedMilli)];
}

function decodeAccount([limit, tokens, consumed, folded]: StoredAccount): Account {
  return {
    limit: decodeLimit(limit),
    tokensMilli: decodeInt(tokens),
    consumedMilli: decodeInt(consumed),
    foldedMilli: decodeInt(folded),
  };
}

function encodeHolder([id, holder]: readonly [string, Holder]): StoredHolder {
  const { expiresAtMs, acquiredAtMs, slots, rates, caller, portable } = holder;
  const carried = rates?.map(encodeAmount) ?? null;
  if (portable === undefined) return [id, expiresAtMs, acquiredAtMs, slots.map(encodeAmount), carried, caller];
  return [id, expiresAtMs, acquiredAtMs, slots.map(encodeAmount), carried, caller, encodePart(portable)];
}

/** What a lease has that was never changed stays short. */
function encodePart({ state, taken, adjusts, step, released, forParents }: PortablePart): StoredPart {
  const granted = [state, taken.map(encodeAmount), adjusts] as const;
  if (step === undefined && released === undefined && forParents === undefined) return granted;
  const changed = [...granted, step ?? 0, released === true ? 1 : 0] as const;
  if (forParents === undefined) return changed;
  return [...changed, forParents.map((other) => [...encodeAmount(other), other.isTotal ? 1 : 0] as const)];
}

function decodePart([state, taken, adjusts, step = 0, released = 0, forParents]: StoredPart): PortablePart {
  const others = forParents?.map(([name, milli, isTotal]): ParentAmount => {
    return { name, milli: decodeInt(milli), isTotal: isTotal === 1 };
  });
  return {
    state,
    taken: taken.map(decodeAmount),
    adjusts,
    ...(step === 0 ? {} : { step }),
    ...(released === 0 ? {} : { released: true }),
    ...(others === undefined ? {} : { forParents: others }),
  };
}

function decodeHolder(stored: StoredHolder): [string, Holder] {
  const [id, expiresAtMs, acquiredAtMs, slots, rates, caller, part] = stored;
  const carried = rates?.map(decodeAmount) ?? null;
  const holder = { expiresAtMs, acquiredAtMs, slots: slots.map(decodeAmount), rates: carried, caller };
  if (part === undefined) return [id, holder];
  return [id, { ...holder, portable: decodePart(part) }];
}

function encodeAmount({ name, milli }: Amount): StoredAmount {
  return [name, encodeInt(milli)];
}

function decodeAmount([name, milli]: StoredAmount): Amount {
  return { name, milli: decodeInt(milli) };
}

function encodeInt(value: Int): StoredInt {
  return typeof value === 'bigint' ? String(value) : value;
}

function decodeInt(value: StoredInt): Int {
  return typeof value === 'string' ? toInt(BigInt(value)) : value;
}

export function encodeLimits(limits: readonly Limit[] | null): string | null {
  return limits === null ? null : JSON.stringify(limits.map(String));
}

export function decodeLimits(text: string | null): readonly Limit[] | null {
  return text === null ? null : (JSON.parse(text) as string[]).map(decodeLimit);
}

const MAX_KNOWN_LIMITS = 1_000;
const knownLimits = new Map<string, Limit>();

/** The same few limits are in every bucket, so each text is parsed once. */
function decodeLimit(text: string): Limit {
  const known = knownLimits.get(text);
  if (known !== undefined) return known;
  const limit = Limit.parse(text);
  if (knownLimits.size >= MAX_KNOWN_LIMITS) knownLimits.clear();
  knownLimits.set(text, limit);
  return limit;
}

export function encodeCounts({ consumedMilli, acquires, expired }: UsageCounts): string {
  const consumed = [...consumedMilli].map(([name, milli]) => encodeAmount({ name, milli }));
  return JSON.stringify([acquires, expired, consumed]);
}

export function decodeCounts(text: string): UsageCounts {
  const [acquires, expired, consumed] = JSON.parse(text) as [number, number, readonly StoredAmount[]];
  return { acquires, expired, consumedMilli: new Map(consumed.map(([name, milli]) => [name, decodeInt(milli)])) };
}

/** Free text of users, stored as JSON: some SQLite libraries cut text at NUL, and none keeps a lone surrogate. */
export function encodeText(text: string | null): string | null {
  return text === null ? null : JSON.stringify(text);
}

export function decodeText(stored: string | null): string | null {
  return stored === null ? null : (JSON.parse(stored) as string);
}
