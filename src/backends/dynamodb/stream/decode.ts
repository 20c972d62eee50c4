import type { AuditRecord } from '../../../backend.js';
import type { EpochMs } from '../../../core/units.js';
import { reasonOf } from '../../../core/reason-of.js';
import { ATTRIBUTE, decodeCounters, findUnknownAttribute, type ShardCounters } from '../table/items.js';
import { AUDIT_PREFIX, parseNamespaceId, parseShardKey, type ShardKey, STATE } from '../table/keys.js';
import { decodeAudit } from '../table/records.js';
import type { Item } from '../client/transport.js';

/** The meaning of one record of the change stream. */
export type StreamChange = BucketChange | AuditChange | OtherChange | Poison;

interface Origin {
  /** `{stream label}/{40 digits}`: sorts as text in the order of an item's changes. */
  readonly sequence: string;
  readonly event: 'INSERT' | 'MODIFY' | 'REMOVE';
  /** Whether DynamoDB's TTL removed it. */
  readonly expired: boolean;
}

/** A shard of a bucket was created (no `before`), written, or removed (no `after`). */
export interface BucketChange extends Origin {
  readonly kind: 'bucket';
  readonly ns: string;
  readonly key: ShardKey;
  /** The time of the change: the writer's, or the store's if the item has none. */
  readonly atMs: EpochMs;
  readonly before: ShardCounters | null;
  readonly after: ShardCounters | null;
  /** The whole item: after the change, or before its removal. */
  readonly item: Item;
  /** An attribute that no bucket of this version has. The counters still count, but the bucket must not be split. */
  readonly unknownAttribute: string | null;
}

export interface AuditChange extends Origin {
  readonly kind: 'audit';
  readonly ns: string;
  /** The stream's id of the change; its sequence if there is none. */
  readonly eventId: string;
  /** The record after the change, or before its removal. */
  readonly record: AuditRecord;
}

/** A change that needs no processing. */
export interface OtherChange extends Origin {
  readonly kind: 'other';
}

/** A record that cannot be decoded. It is reported and skipped, because a retry would not help. */
export interface Poison {
  readonly kind: 'poison';
  readonly reason: string;
  /** As far as they are readable. */
  readonly sequence: string | null;
  readonly eventId: string | null;
}

/** Lambda's format and that of the Streams API, which differ in times and identities. */
interface RawRecord {
  readonly eventID?: unknown;
  readonly eventName?: unknown;
  readonly userIdentity?: RawIdentity | null;
  readonly dynamodb?: {
    readonly SequenceNumber?: unknown;
    readonly ApproximateCreationDateTime?: unknown;
    readonly Keys?: unknown;
    readonly NewImage?: unknown;
    readonly OldImage?: unknown;
  };
}

interface RawIdentity {
  readonly type?: unknown;
  readonly principalId?: unknown;
  readonly Type?: unknown;
  readonly PrincipalId?: unknown;
}

const SEQUENCE_DIGITS = 40;

/** The label of a stream: the last part of its ARN. A stream that is enabled later has a greater label. */
export function parseStreamLabel(streamArn: string): string {
  return streamArn.slice(streamArn.lastIndexOf('/') + 1);
}

/** Decodes one record of a stream. Never throws: an error is returned as poison. */
export function decodeChange(raw: unknown, streamLabel: string): StreamChange {
  const record = (raw ?? {}) as RawRecord;
  try {
    return decode(record, streamLabel);
  } catch (error) {
    const reason = reasonOf(error);
    return { kind: 'poison', reason, sequence: sequenceOf(record, streamLabel), eventId: eventIdOf(record) };
  }
}

function decode(record: RawRecord, streamLabel: string): Exclude<StreamChange, Poison> {
  const sequence = sequenceOf(record, streamLabel);
  if (sequence === null) throw new RangeError('it has no sequence number of up to 40 digits');
  const origin: Origin = { sequence, event: eventOf(record), expired: isExpiry(record.userIdentity) };
  const keys = imageOf(record.dynamodb?.Keys, 'keys');
  const PK = keys['PK']?.S;
  const SK = keys['SK']?.S;
  if (PK === undefined || SK === undefined) throw new RangeError('its keys are not PK and SK');
  const ns = parseNamespaceId(PK);
  if (PK.startsWith('/BUCKET#', ns.length)) {
    if (SK !== STATE) throw new RangeError(`this version does not know the record ${SK} of a bucket`);
    return decodeBucket(record, origin, PK);
  }
  if (PK.startsWith('/AUDIT#', ns.length) && SK.startsWith(AUDIT_PREFIX)) {
    const image = lastImage(record, origin);
    // An older layout with times as text. The record comes again when it is migrated.
    if (image['timestamp']?.S !== undefined) return { ...origin, kind: 'other' };
    return { ...origin, kind: 'audit', ns, eventId: eventIdOf(record) ?? sequence, record: decodeAudit(image) };
  }
  return { ...origin, kind: 'other' };
}

function decodeBucket({ dynamodb }: RawRecord, origin: Origin, pk: string): BucketChange {
  const parsed = parseShardKey(pk);
  if (parsed === null) throw new RangeError(`${pk} is not the key of a bucket`);
  const { ns, ...key } = parsed;
  const old = origin.event === 'INSERT' ? null : imageOf(dynamodb?.OldImage, 'old image');
  const item = origin.event === 'REMOVE' ? null : imageOf(dynamodb?.NewImage, 'new image');
  const shown = item ?? old ?? {};
  const unknownAttribute = findUnknownAttribute(shown) ?? null;
  // Every write of this layout has an id. An item from before a migration has a base and no id, and counts nothing.
  const isOlder = shown[ATTRIBUTE.base] !== undefined && shown[ATTRIBUTE.writeId] === undefined;
  // Counters are never removed. If they are missing, a later version stores them elsewhere; usage must not be
  // subtracted.
  const isForeign = unknownAttribute !== null || old?.[ATTRIBUTE.acquires] !== undefined;
  if (isForeign && !isOlder && shown[ATTRIBUTE.acquires] === undefined) {
    throw new RangeError(`it has no counters that this version knows, but ${Object.keys(shown).join(', ')}`);
  }
  const before = old === null ? null : decodeCounters(old);
  const after = item === null ? null : decodeCounters(item);
  // The store's time has whole seconds, and may fall into another hour than the writer's.
  const atMs = after?.writtenAtMs ?? instantOf(dynamodb?.ApproximateCreationDateTime);
  if (atMs === null) throw new RangeError(`the time of the write of ${pk} is not known`);
  return { ...origin, kind: 'bucket', ns, key, atMs, before, after, item: shown, unknownAttribute };
}

function lastImage({ dynamodb }: RawRecord, { event }: Origin): Item {
  return event === 'REMOVE' ? imageOf(dynamodb?.OldImage, 'old image') : imageOf(dynamodb?.NewImage, 'new image');
}

function eventOf({ eventName }: RawRecord): Origin['event'] {
  if (eventName === 'INSERT' || eventName === 'MODIFY' || eventName === 'REMOVE') return eventName;
  throw new RangeError(`${String(eventName)} is not an event of a stream`);
}

function eventIdOf({ eventID }: RawRecord): string | null {
  return typeof eventID === 'string' && eventID !== '' ? eventID : null;
}

/** Engines and services pad to different lengths, or not at all. */
function sequenceOf({ dynamodb }: RawRecord, streamLabel: string): string | null {
  const number = dynamodb?.SequenceNumber;
  if (typeof number !== 'string' || !/^\d{1,40}$/.test(number)) return null;
  return `${streamLabel}/${number.padStart(SEQUENCE_DIGITS, '0')}`;
}

/** https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html */
function isExpiry(identity: RawIdentity | null | undefined): boolean {
  const type = identity?.type ?? identity?.Type;
  const principal = identity?.principalId ?? identity?.PrincipalId;
  return type === 'Service' && principal === 'dynamodb.amazonaws.com';
}

function imageOf(image: unknown, what: string): Item {
  if (typeof image === 'object' && image !== null) return image as Item;
  throw new RangeError(`it has no ${what}`);
}

/** Lambda sends seconds; the SDK returns a date, which JSON turns into text. */
function instantOf(time: unknown): EpochMs | null {
  const ms = typeof time === 'number' ? time * 1_000 : time instanceof Date ? time.getTime() : Date.parse(String(time));
  return Number.isFinite(ms) ? ms : null;
}
