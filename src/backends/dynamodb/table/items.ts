import type { Rate } from '../../../core/bucket/bucket.js';
import type { ConfigVersion } from '../../../core/config/config.js';
import { parseLeaseTime } from '../../../core/identifiers.js';
import { type Int, parseInt10 } from '../../../core/int.js';
import { hasBalance, isConsumed } from '../../../core/limit-kind.js';
import { Limit } from '../../../core/limit.js';
import type { Pause } from '../../../core/pause.js';
import { shareOf } from '../../../core/bucket/shard.js';
import type { UsageCounts } from '../../../core/usage/usage.js';
import { type EpochMs, MILLI, type Millitokens } from '../../../core/units.js';
import { parseShardKey, type ShardKey } from './keys.js';
import { isMigratedWriteId } from '../bucket/migrated-write-id.js';
import { decodeHolder, type StoredHolder } from './stored-holder.js';
import { decodeKind, encodePeriod, limitOfKind } from './stored-period.js';
import type { AttributeValue, Item } from '../client/transport.js';

export { decodeHolder, encodeHolder, type StoredHolder } from './stored-holder.js';
export { UNLIMITED_PERIOD } from './stored-period.js';

/** The stored names of a bucket's attributes. All other code uses the long names. */
export const ATTRIBUTE = {
  base: 'rf',
  shardCount: 'shard_count',
  version: 'cv',
  ttl: 'ttl',
  writeId: 'w',
  writeUnits: 'wc',
  acquires: 'ac',
  expired: 'un',
  /** When a pause ends, and its reason. */
  pauseEnd: 'pz',
  pauseReason: 'pzr',
  tokens: (limit: string) => namesOf(limit).tokens,
  capacity: (limit: string) => namesOf(limit).capacity,
  refillAmount: (limit: string) => namesOf(limit).refillAmount,
  refillPeriod: (limit: string) => namesOf(limit).refillPeriod,
  /** Net consumption of rates and unlimited limits. For slots, the held amount is the difference of capacity and tokens. */
  consumed: (limit: string) => namesOf(limit).consumed,
  holder: (leaseId: string) => `h_${leaseId}`,
} as const;

interface LimitNames {
  readonly tokens: string;
  readonly capacity: string;
  readonly refillAmount: string;
  readonly refillPeriod: string;
  readonly consumed: string;
}

/** Cached: each write needs a dozen names, and a newly built string is slow to look up. */
const LIMIT_NAMES = new Map<string, LimitNames>();
const MAX_LIMIT_NAMES = 1_000;

function namesOf(limit: string): LimitNames {
  const known = LIMIT_NAMES.get(limit);
  if (known !== undefined) return known;
  if (LIMIT_NAMES.size >= MAX_LIMIT_NAMES) LIMIT_NAMES.clear();
  const names = {
    tokens: `b_${limit}_tk`,
    capacity: `b_${limit}_cp`,
    refillAmount: `b_${limit}_ra`,
    refillPeriod: `b_${limit}_rp`,
    consumed: `b_${limit}_tc`,
  };
  LIMIT_NAMES.set(limit, names);
  return names;
}

/** The part of a limit that an attribute contains; null if it contains none. */
interface LimitPart {
  readonly limit: string;
  readonly field: 'tk' | 'cp' | 'ra' | 'rp' | 'tc';
}

/** Cached: every answer has some twenty names, nearly always the same ones. */
const LIMIT_PARTS = new Map<string, LimitPart | null>();

function limitPartOf(name: string): LimitPart | null {
  const known = LIMIT_PARTS.get(name);
  if (known !== undefined) return known;
  if (LIMIT_PARTS.size >= MAX_LIMIT_NAMES) LIMIT_PARTS.clear();
  const [, limit, field] = LIMIT_ATTRIBUTE.exec(name) ?? [];
  const part = limit === undefined ? null : { limit, field: field as LimitPart['field'] };
  LIMIT_PARTS.set(name, part);
  return part;
}

const LIMIT_ATTRIBUTE = /^b_(.+)_(tk|cp|ra|rp|tc)$/;
const KNOWN_ATTRIBUTE = /^(?:[PS]K|GSI[1-4][PS]K|rf|shard_count|cv|ttl|w|wc|ac|un|pzr?|b_.+_(?:tk|cp|ra|rp|tc)|h_.+)$/;

/** One limit of one shard. */
export interface Account {
  /** The whole limit. */
  readonly limit: Limit;
  /** This shard's share of it. */
  readonly rate: Rate;
  readonly tokensMilli: Millitokens;
  readonly consumedMilli: Int;
}

/** One shard of a bucket as the store last returned it. */
export interface ShardImage {
  readonly key: ShardKey;
  readonly baseMs: EpochMs;
  readonly shardCount: number;
  readonly version: ConfigVersion;
  /** null: it never expires. */
  readonly ttlSec: number | null;
  readonly writeId: string;
  readonly writeUnits: number;
  readonly acquires: number;
  readonly expired: number;
  readonly limits: readonly Account[];
  /** The consumption of limits that were removed from the bucket. */
  readonly retired: ReadonlyMap<string, Int>;
  readonly holders: ReadonlyMap<string, StoredHolder>;
  /** Whether the shard is on the sweep list. */
  readonly onSweepList: boolean;
  /** The approximate size of the item, by which writes are billed. */
  readonly bytes: number;
  /** Left out if there is none. It may have ended. */
  readonly pause?: Pause;
}

const NO_HOLDERS: ReadonlyMap<string, StoredHolder> = new Map();
const NONE_RETIRED: ReadonlyMap<string, Int> = new Map();

export function accountOf({ limits }: ShardImage, name: string): Account | undefined {
  for (const account of limits) if (account.limit.name === name) return account;
  return undefined;
}

/**
 * Decodes a bucket item. `known`: limits that the bucket may have. A known limit with the stored numbers is reused,
 * which saves creating it and keeps its default cost, which is not stored. `key`: the key of the item, if the caller
 * has it.
 */
export function decodeShard(item: Item, known: readonly Limit[], key: ShardKey = shardKeyOf(item)): ShardImage {
  const { shard } = key;
  const shardCount = numberOf(item[ATTRIBUTE.shardCount]) || 1;
  const limits: Account[] = [];
  let holders: Map<string, StoredHolder> | null = null;
  let retired: Map<string, Int> | null = null;
  let bytes = 0;
  for (const name in item) {
    const value = item[name];
    bytes += name.length + sizeOf(value);
    if (name.startsWith('h_')) {
      const id = name.slice(2);
      holders ??= new Map();
      holders.set(id, decodeHolder(id, value?.S ?? ''));
      continue;
    }
    const part = limitPartOf(name);
    if (part === null) continue;
    const { limit, field } = part;
    if (field === 'tk') {
      const account = decodeAccount(item, limit, known, shard, shardCount);
      if (account !== null) limits.push(account);
    } else if (field === 'tc') {
      const isRetired = item[ATTRIBUTE.tokens(limit)] === undefined && !isUnlimited(item, limit);
      if (isRetired) (retired ??= new Map()).set(limit, parseInt10(value?.N ?? '0'));
    } else if (field === 'rp' && item[ATTRIBUTE.tokens(limit)] === undefined && isUnlimited(item, limit)) {
      limits.push(decodeUnlimited(item, limit, known));
    }
  }
  const image: ShardImage = {
    key,
    baseMs: numberOf(item[ATTRIBUTE.base]),
    shardCount,
    version: parseVersion(item[ATTRIBUTE.version]?.S ?? '0'),
    ttlSec: item[ATTRIBUTE.ttl] === undefined ? null : numberOf(item[ATTRIBUTE.ttl]),
    writeId: item[ATTRIBUTE.writeId]?.S ?? '',
    writeUnits: numberOf(item[ATTRIBUTE.writeUnits]),
    acquires: numberOf(item[ATTRIBUTE.acquires]),
    expired: numberOf(item[ATTRIBUTE.expired]),
    limits: limits.length > 1 ? inOrderOf(limits, known) : limits,
    retired: retired ?? NONE_RETIRED,
    holders: holders ?? NO_HOLDERS,
    onSweepList: item['GSI1PK'] !== undefined,
    bytes,
  };
  const pause = decodePauseAttributes(item);
  return pause === undefined ? image : { ...image, pause };
}

/** The pause of a bucket, of an entity, or of the config of an entity and resource: it has the same names in all. */
export function decodePauseAttributes(item: Item): Pause | undefined {
  const endMs = item[ATTRIBUTE.pauseEnd]?.N;
  if (endMs === undefined) return undefined;
  return { endMs: Number(endMs), reason: item[ATTRIBUTE.pauseReason]?.S ?? '' };
}

export function encodePauseAttributes(pause: Pause | null | undefined): Item {
  if (pause === null || pause === undefined) return {};
  return { [ATTRIBUTE.pauseEnd]: { N: String(pause.endMs) }, [ATTRIBUTE.pauseReason]: { S: pause.reason } };
}

function shardKeyOf(item: Item): ShardKey {
  const key = parseShardKey(item['PK']?.S ?? '');
  if (key === null) throw new RangeError(`Not the key of a bucket: ${item['PK']?.S ?? ''}`);
  const { entityId, resource, shard } = key;
  return { entityId, resource, shard };
}

function isUnlimited(item: Item, name: string): boolean {
  return !hasBalance(decodeKind(numberOf(item[ATTRIBUTE.refillPeriod(name)])));
}

function decodeUnlimited(item: Item, name: string, known: readonly Limit[]): Account {
  const limit = known.find((one) => one.name === name && !hasBalance(one.kind)) ?? Limit.unlimited(name);
  const consumedMilli = parseInt10(item[ATTRIBUTE.consumed(name)]?.N ?? '0');
  return { limit, rate: limit, tokensMilli: 0, consumedMilli };
}

/** null unless all four numbers exist: of a removed limit only the counter stays. */
function decodeAccount(
  item: Item,
  name: string,
  known: readonly Limit[],
  shard: number,
  shardCount: number,
): Account | null {
  const names = namesOf(name);
  const capacity = item[names.capacity]?.N;
  const refill = item[names.refillAmount]?.N;
  const period = item[names.refillPeriod]?.N;
  const tokens = item[names.tokens]?.N;
  if (capacity === undefined || refill === undefined || period === undefined || tokens === undefined) return null;
  const limit = limitOf(name, Number(capacity) / MILLI, Number(refill) / MILLI, Number(period), known);
  return {
    limit,
    rate: shareOf(limit, shard, shardCount),
    tokensMilli: parseInt10(tokens),
    consumedMilli: parseInt10(item[names.consumed]?.N ?? '0'),
  };
}

function limitOf(
  name: string,
  capacity: number,
  refillAmount: number,
  refillPeriodMs: number,
  known: readonly Limit[],
): Limit {
  for (const limit of known) {
    if (
      limit.name === name &&
      limit.capacity === capacity &&
      limit.refillAmount === refillAmount &&
      limit.refillPeriodMs === refillPeriodMs
    ) {
      return limit;
    }
  }
  return limitOfKind(decodeKind(refillPeriodMs), name, { capacity, refillAmount, refillPeriodMs });
}

/** DynamoDB returns attributes in no defined order. */
function inOrderOf(limits: readonly Account[], known: readonly Limit[]): readonly Account[] {
  if (limits.length <= known.length && limits.every(({ limit }, at) => limit.name === known[at]?.name)) return limits;
  const positionOf = ({ limit }: Account): number => {
    const position = known.findIndex(({ name }) => name === limit.name);
    return position < 0 ? known.length : position;
  };
  return limits.toSorted((a, b) => positionOf(a) - positionOf(b) || (a.limit.name < b.limit.name ? -1 : 1));
}

/** The attributes of an image, without its keys and index keys. */
export function encodeShard(image: ShardImage): Item {
  const item: Item = {
    [ATTRIBUTE.base]: { N: String(image.baseMs) },
    [ATTRIBUTE.shardCount]: { N: String(image.shardCount) },
    [ATTRIBUTE.version]: { S: printVersion(image.version) },
    [ATTRIBUTE.writeId]: { S: image.writeId },
    [ATTRIBUTE.writeUnits]: { N: String(image.writeUnits) },
    [ATTRIBUTE.acquires]: { N: String(image.acquires) },
    [ATTRIBUTE.expired]: { N: String(image.expired) },
    ...encodePauseAttributes(image.pause),
  };
  if (image.ttlSec !== null) item[ATTRIBUTE.ttl] = { N: String(image.ttlSec) };
  for (const { limit, tokensMilli, consumedMilli } of image.limits) {
    if (hasBalance(limit.kind)) {
      item[ATTRIBUTE.tokens(limit.name)] = { N: String(tokensMilli) };
      item[ATTRIBUTE.capacity(limit.name)] = { N: String(limit.capacityMilli) };
      item[ATTRIBUTE.refillAmount(limit.name)] = { N: String(limit.refillMilli) };
    }
    item[ATTRIBUTE.refillPeriod(limit.name)] = { N: String(encodePeriod(limit)) };
    if (isConsumed(limit.kind)) item[ATTRIBUTE.consumed(limit.name)] = { N: String(consumedMilli) };
  }
  for (const [name, milli] of image.retired) item[ATTRIBUTE.consumed(name)] = { N: String(milli) };
  for (const [leaseId, { text }] of image.holders) item[ATTRIBUTE.holder(leaseId)] = { S: text };
  return item;
}

/** When the shard was last written: the write id contains the time. */
export function writtenAtMs({ writeId }: Pick<ShardImage, 'writeId'>): EpochMs {
  return parseLeaseTime(writeId);
}

/** The counters of a shard since it was created, including limits that were removed. Usage is the difference of two. */
export interface ShardCounters extends UsageCounts {
  readonly shardCount: number;
  /** null: this code did not write the item, or the item is damaged. */
  readonly writtenAtMs: EpochMs | null;
  /** A client of an older layout or a migration wrote the item: its consumption was counted in the old layout. */
  readonly foreign?: true;
}

/** Throws RangeError for a counter that is not a whole number. */
export function decodeCounters(item: Item): ShardCounters {
  const consumedMilli = new Map<string, Int>();
  for (const name in item) {
    const part = limitPartOf(name);
    if (part?.field === 'tc') consumedMilli.set(part.limit, readCounter(item, name));
  }
  const writeId = item[ATTRIBUTE.writeId]?.S ?? '';
  return {
    consumedMilli,
    acquires: Number(readCounter(item, ATTRIBUTE.acquires)),
    expired: Number(readCounter(item, ATTRIBUTE.expired)),
    shardCount: Number(readCounter(item, ATTRIBUTE.shardCount)) || 1,
    writtenAtMs: /^[0-9A-Za-z_~]{8}/.test(writeId) ? writtenAtMs({ writeId }) : null,
    ...(item[ATTRIBUTE.writeId] === undefined || isMigratedWriteId(writeId) ? { foreign: true } : {}),
  };
}

/** The first attribute that no bucket of this version has: a later version wrote it, and its meaning is unknown. */
export function findUnknownAttribute(item: Item): string | undefined {
  return Object.keys(item).find((name) => !KNOWN_ATTRIBUTE.test(name));
}

function readCounter(item: Item, name: string): Int {
  const value = item[name];
  if (value === undefined) return 0;
  if (value.N === undefined || !/^-?\d+$/.test(value.N)) throw new RangeError(`${name} is not a whole number`);
  return parseInt10(value.N);
}

/** `{sequence}`, or `{sequence}@{opened}` for limits that are declared in code. */
export function printVersion({ sequence, openedAtMs }: ConfigVersion): string {
  return openedAtMs === 0 ? String(sequence) : `${sequence}@${openedAtMs}`;
}

function parseVersion(text: string): ConfigVersion {
  if (text === lastVersion.text) return lastVersion.version;
  const [sequence, openedAtMs = '0'] = text.split('@');
  const version = { sequence: Number(sequence), openedAtMs: Number(openedAtMs) };
  lastVersion = { text, version };
  return version;
}

/** A cache of one entry, because most buckets have the same version. */
let lastVersion: { readonly text: string; readonly version: ConfigVersion } = {
  text: '0',
  version: { sequence: 0, openedAtMs: 0 },
};

function numberOf(value: AttributeValue | undefined): number {
  return Number(value?.N ?? 0);
}

/** By DynamoDB's approximation: one byte per two digits, plus one. */
function sizeOf(value: AttributeValue | undefined): number {
  if (value?.N !== undefined) return (value.N.length >> 1) + 1;
  return value?.S?.length ?? 1;
}
