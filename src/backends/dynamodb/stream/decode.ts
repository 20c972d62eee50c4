import type { AuditRecord } from '../../../backend.js';
import type { EpochMs } from '../../../core/units.js';
import { ATTRIBUTE, decodeCounters, findUnknownAttribute, type ShardCounters } from '../table/items.js';
import { AUDIT_PREFIX, parseNamespaceId, parseShardKey, type ShardKey, STATE } from '../table/keys.js';
import { decodeAudit } from '../table/records.js';
import type { Item } from '../client/transport.js';

/** What one record of the change stream means. */
export type Change = BucketChange | AuditChange | OtherChange | Poison;

interface Origin {
  /** `{stream label}/{40 digits}`: as text, later changes of an item come after earlier ones. */
  readonly sequence: string;
  readonly event: 'INSERT' | 'MODIFY' | 'REMOVE';
  /** Whether DynamoDB removed it because its time was over. */
  readonly expired: boolean;
}

/** A shard of a bucket was made (no `before`), written, or removed (no `after`). */
export interface BucketChange extends Origin {
  readonly kind: 'bucket';
  readonly ns: string;
  readonly key: ShardKey;
  /** When it happened: the writer's time, or the store's where there is none. */
  readonly atMs: EpochMs;
  readonly before: ShardCounters | null;
  readonly after: ShardCounters | null;
  /** The whole item: as it is now, or as it was when it was removed. */
  readonly item: Item;
  /** One that no bucket of this version has. Its counters count nevertheless; nobody should split it. */
  readonly unknownAttribute: string | null;
}

export interface AuditChange extends Origin {
  readonly kind: 'audit';
  readonly ns: string;
  /** The stream's own id of the change; its place in the stream where there is none. */
  readonly eventId: string;
  /** As it is now, or as it was when it was removed. */
  readonly record: AuditRecord;
}

/** Nothing that anybody waits for. */
export interface OtherChange extends Origin {
  readonly kind: 'other';
}

/** A record that cannot be understood: it is reported and passed over, because it will not get better. */
export interface Poison {
  readonly kind: 'poison';
  readonly reason: string;
  /** As far as they can be told. */
  readonly sequence: string | null;
  readonly eventId: string | null;
}

/** Lambda's spelling and that of the Streams API, whose times and identities differ. */
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

/** The label of a stream, which stands at the end of its ARN. A stream that is enabled later has a greater one. */
export function parseStreamLabel(streamArn: string): string {
  return streamArn.slice(streamArn.lastIndexOf('/') + 1);
}

/** Reads one record of a stream. Never throws: what is wrong with a record is a value. */
export function decodeChange(raw: unknown, streamLabel: string): Change {
  const record = (raw ?? {}) as RawRecord;
  try {
    return decode(record, streamLabel);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { kind: 'poison', reason, sequence: sequenceOf(record, streamLabel), eventId: eventIdOf(record) };
  }
}

function decode(record: RawRecord, streamLabel: string): Exclude<Change, Poison> {
  const sequence = sequenceOf(record, streamLabel);
  if (sequence === null) throw new RangeError('it has no sequence number of up to 40 digits');
  const origin: Origin = { sequence, event: eventOf(record), expired: isExpiry(record.userIdentity) };
  const keys = imageOf(record.dynamodb?.Keys, 'keys');
  const PK = keys['PK']?.S;
  const SK = keys['SK']?.S;
  if (PK === undefined || SK === undefined) throw new RangeError('its keys are not PK and SK');
  const ns = parseNamespaceId(PK);
  if (PK.startsWith('/BUCKET#', ns.length)) {
    if (SK !== STATE) throw new RangeError(`this version knows no ${SK} of a bucket`);
    return decodeBucket(record, origin, PK);
  }
  if (PK.startsWith('/AUDIT#', ns.length) && SK.startsWith(AUDIT_PREFIX)) {
    const image = lastImage(record, origin);
    // Of an older layout, which wrote its times as text: it comes again when it is migrated.
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
  // Every write of this layout has an id; what was written before a migration has a base and none, and counts nothing.
  const isOlder = shown[ATTRIBUTE.base] !== undefined && shown[ATTRIBUTE.writeId] === undefined;
  // Counters are never removed: a later version keeps them elsewhere, and nothing must be turned back for it.
  const isForeign = unknownAttribute !== null || old?.[ATTRIBUTE.acquires] !== undefined;
  if (isForeign && !isOlder && shown[ATTRIBUTE.acquires] === undefined) {
    throw new RangeError(`it has no counters that this version knows, but ${Object.keys(shown).join(', ')}`);
  }
  const before = old === null ? null : decodeCounters(old);
  const after = item === null ? null : decodeCounters(item);
  // The store's time has whole seconds, and need not be of the same hour as the writer's.
  const atMs = after?.writtenAtMs ?? instantOf(dynamodb?.ApproximateCreationDateTime);
  if (atMs === null) throw new RangeError(`nothing says when ${pk} was written`);
  return { ...origin, kind: 'bucket', ns, key, atMs, before, after, item: shown, unknownAttribute };
}

function lastImage({ dynamodb }: RawRecord, { event }: Origin): Item {
  return event === 'REMOVE' ? imageOf(dynamodb?.OldImage, 'old image') : imageOf(dynamodb?.NewImage, 'new image');
}

function eventOf({ eventName }: RawRecord): Origin['event'] {
  if (eventName === 'INSERT' || eventName === 'MODIFY' || eventName === 'REMOVE') return eventName;
  throw new RangeError(`${String(eventName)} is no event of a stream`);
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

/** Lambda counts seconds; the SDK makes a date of them, and JSON of that a text. */
function instantOf(time: unknown): EpochMs | null {
  const ms = typeof time === 'number' ? time * 1_000 : time instanceof Date ? time.getTime() : Date.parse(String(time));
  return Number.isFinite(ms) ? ms : null;
}
