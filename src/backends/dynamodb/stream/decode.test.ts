import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { buildLeaseId } from '../../../core/identifiers.js';
import type { Item } from '../client/transport.js';
import { decodeChange, parseStreamLabel } from './decode.js';

const ARN = 'arn:aws:dynamodb:us-east-1:123456789012:table/limits/stream/2026-11-15T14:05:30.891';
const LABEL = '2026-11-15T14:05:30.891';
const AT_MS = Date.UTC(2026, 10, 15, 14, 59, 59, 999);
const PK = 'ns1/BUCKET#user-1#gpt-4#0';

function bucketItem(overrides: Item = {}): Item {
  return {
    PK: { S: PK },
    SK: { S: '#STATE' },
    rf: { N: '1' },
    shard_count: { N: '1' },
    cv: { S: '3' },
    w: { S: `${buildLeaseId(AT_MS, 0.5)}abc` },
    wc: { N: '9' },
    ac: { N: '4' },
    un: { N: '1' },
    b_rpm_tk: { N: '6000' },
    b_rpm_cp: { N: '10000' },
    b_rpm_ra: { N: '10000' },
    b_rpm_rp: { N: '60000' },
    b_rpm_tc: { N: '4000' },
    ...overrides,
  };
}

/** In Lambda's format. */
function lambdaRecord(overrides: Record<string, unknown> = {}, dynamodb: Record<string, unknown> = {}) {
  return {
    eventID: 'c4ca4238a0b923820dcc509a6f75849b',
    eventName: 'INSERT',
    eventVersion: '1.1',
    eventSource: 'aws:dynamodb',
    awsRegion: 'us-east-1',
    dynamodb: {
      ApproximateCreationDateTime: 1_794_751_530,
      Keys: { PK: { S: PK }, SK: { S: '#STATE' } },
      NewImage: bucketItem(),
      SequenceNumber: '4421584500000000017450439091',
      SizeBytes: 26,
      StreamViewType: 'NEW_AND_OLD_IMAGES',
      ...dynamodb,
    },
    eventSourceARN: ARN,
    ...overrides,
  };
}

describe('decoding a change of a bucket', () => {
  test("a bucket change has the counters of both images, the writer's time, and a 40-digit sequence after the label", () => {
    const OldImage = bucketItem({ ac: { N: '3' }, b_rpm_tc: { N: '-1000' }, b_old_tc: { N: '9007199254740993000' } });
    const change = decodeChange(lambdaRecord({ eventName: 'MODIFY' }, { OldImage }), parseStreamLabel(ARN));
    expect(change).toMatchObject({
      kind: 'bucket',
      event: 'MODIFY',
      ns: 'ns1',
      key: { entityId: 'user-1', resource: 'gpt-4', shard: 0 },
      sequence: `${LABEL}/0000000000004421584500000000017450439091`,
      atMs: AT_MS,
      expired: false,
      item: bucketItem(),
    });
    const { before, after } = change as Extract<typeof change, { kind: 'bucket' }>;
    expect(before).toEqual({
      consumedMilli: new Map<string, unknown>([
        ['rpm', -1_000],
        ['old', 9_007_199_254_740_993_000n],
      ]),
      acquires: 3,
      expired: 1,
      shardCount: 1,
      writtenAtMs: AT_MS,
    });
    expect(after?.consumedMilli).toEqual(new Map([['rpm', 4_000]]));
  });

  test('a bucket change in the format of the Streams API decodes the same', () => {
    const { eventSourceARN: _, ...record } = lambdaRecord(
      { userIdentity: { PrincipalId: 'dynamodb.amazonaws.com', Type: 'Service' } },
      { ApproximateCreationDateTime: new Date(1_794_751_530_000) },
    );
    const lambda = lambdaRecord({ userIdentity: { principalId: 'dynamodb.amazonaws.com', type: 'Service' } });
    expect(decodeChange(record, LABEL)).toEqual(decodeChange(lambda, LABEL));
    expect(decodeChange(record, LABEL)).toMatchObject({ kind: 'bucket', expired: true });
  });

  test("a bucket change has the store's time if the item has none", () => {
    const { w: _, ...NewImage } = bucketItem();
    for (const time of [1_794_751_530, new Date(1_794_751_530_000), new Date(1_794_751_530_000).toISOString()]) {
      const change = decodeChange(lambdaRecord({}, { NewImage, ApproximateCreationDateTime: time }), LABEL);
      expect(change).toMatchObject({ kind: 'bucket', atMs: 1_794_751_530_000 });
    }
  });

  test('a removed bucket has no counters after the change, and its last item', () => {
    const removal = lambdaRecord({ eventName: 'REMOVE' }, { NewImage: undefined, OldImage: bucketItem() });
    expect(decodeChange(removal, LABEL)).toMatchObject({ after: null, before: { acquires: 4 }, item: bucketItem() });
  });

  test.each(['zz', 'b_rpm_zz', 'GSI5PK'])('a bucket change counts in spite of the unknown attribute %s', (name) => {
    const NewImage = bucketItem({ [name]: { S: 'from the future' } });
    const change = decodeChange(lambdaRecord({}, { NewImage }), LABEL);
    expect(change).toMatchObject({ kind: 'bucket', after: { acquires: 4 }, unknownAttribute: name });
  });

  test('a bucket change knows every attribute that this version writes', () => {
    const NewImage = bucketItem({ h_0123abc: { S: '17' }, GSI1PK: { S: 'ns1/SWEEP' }, 'b_a-b.c_tk': { N: '1' } });
    expect(decodeChange(lambdaRecord({}, { NewImage }), LABEL)).toMatchObject({ unknownAttribute: null });
  });
});

test('sequences sort as text in the order of their numbers, whatever their length', () => {
  const sequence = (value: bigint): string => {
    const change = decodeChange(lambdaRecord({}, { SequenceNumber: String(value) }), LABEL);
    return change.sequence ?? '';
  };
  fc.assert(
    fc.property(fc.bigInt(0n, 10n ** 40n - 1n), fc.bigInt(0n, 10n ** 40n - 1n), (a, b) => {
      expect(sequence(a) < sequence(b)).toBe(a < b);
    }),
  );
  expect(sequence(9n) < sequence(10n)).toBe(true);
});

describe('decoding a change of an audit record', () => {
  const Keys = { PK: { S: 'ns1/AUDIT#a/AUDIT' }, SK: { S: '#AUDIT#01J' } };
  const image = { ...Keys, action: { S: 'entity.create' }, timestamp: { N: '17' }, after: { S: '{"id":"a/AUDIT"}' } };

  test('an expired audit record is decoded as it was before its removal', () => {
    const userIdentity = { type: 'Service', principalId: 'dynamodb.amazonaws.com' };
    const removal = lambdaRecord({ eventName: 'REMOVE', userIdentity }, { Keys, OldImage: image });
    expect(decodeChange(removal, LABEL)).toMatchObject({
      kind: 'audit',
      ns: 'ns1',
      event: 'REMOVE',
      expired: true,
      record: { id: '01J', subject: 'a/AUDIT', action: 'entity.create', atMs: 17, after: { id: 'a/AUDIT' } },
    });
  });

  test.each([
    ['that a caller deleted', undefined],
    ['that another service deleted', { type: 'Service', principalId: 'backup.amazonaws.com' }],
    ['that a user deleted', { type: 'User', principalId: 'dynamodb.amazonaws.com' }],
    ['without an identity', null],
  ])('an audit record %s did not expire', (_who, userIdentity) => {
    const removal = lambdaRecord({ eventName: 'REMOVE', userIdentity }, { Keys, OldImage: image });
    expect(decodeChange(removal, LABEL)).toMatchObject({ kind: 'audit', expired: false });
  });

  test('an audit record of an older layout is ignored', () => {
    const NewImage = { ...image, timestamp: { S: '2026-01-01T00:00:00Z' } };
    expect(decodeChange(lambdaRecord({}, { Keys, NewImage }), LABEL)).toMatchObject({ kind: 'other' });
  });
});

test.each([
  ['ns1/ENTITY#user-1', '#META'],
  ['ns1/ENTITY#user-1', '#USAGE#gpt-4#hourly#2026-11-15T14:00:00.000Z'],
  ['ns1/ENTITY#a/BUCKET', '#STATE'],
  ['_/SYSTEM#', '#NSID#ns1'],
  ['another-program', 'key'],
])('a change of %s %s is ignored', (pk, sk) => {
  const Keys = { PK: { S: pk }, SK: { S: sk } };
  expect(decodeChange(lambdaRecord({}, { Keys }), LABEL)).toMatchObject({ kind: 'other', event: 'INSERT' });
});

const auditKeys = { PK: { S: 'ns1/AUDIT#a' }, SK: { S: '#AUDIT#1' } };

const MALFORMED: readonly (readonly [what: string, record: unknown, reason: RegExp])[] = [
  ['nothing', undefined, /sequence/],
  ['a text', 'INSERT', /sequence/],
  ['a record without its body', { eventName: 'INSERT' }, /sequence/],
  ['a sequence that is not a number', lambdaRecord({}, { SequenceNumber: '12x' }), /sequence/],
  ['a sequence of 41 digits', lambdaRecord({}, { SequenceNumber: '1'.repeat(41) }), /sequence/],
  ['another event', lambdaRecord({ eventName: 'TRUNCATE' }), /TRUNCATE/],
  ['no keys', lambdaRecord({}, { Keys: undefined }), /keys/],
  ['other keys', lambdaRecord({}, { Keys: { Id: { N: '1' } } }), /PK and SK/],
  ['no new image', lambdaRecord({}, { NewImage: undefined }), /new image/],
  ['no old image', lambdaRecord({ eventName: 'MODIFY' }), /old image/],
  ['a removal without an image', lambdaRecord({ eventName: 'REMOVE' }), /old image/],
  ['a counter that is text', lambdaRecord({}, { NewImage: bucketItem({ b_rpm_tc: { S: '1' } }) }), /b_rpm_tc/],
  ['a counter with a fraction', lambdaRecord({}, { NewImage: bucketItem({ ac: { N: '1.5' } }) }), /ac/],
  [
    'a bucket without a shard',
    lambdaRecord({}, { Keys: { PK: { S: 'ns1/BUCKET#a#b' }, SK: { S: '#STATE' } } }),
    /key of a bucket/,
  ],
  [
    'a bucket without a time',
    lambdaRecord({}, { NewImage: bucketItem({ w: { S: '?' } }), ApproximateCreationDateTime: undefined }),
    /time of the write/,
  ],
  [
    'a bucket in the layout of a later version',
    lambdaRecord({}, { NewImage: { limits: { M: {} }, w: { N: '1' } } }),
    /no counters .* limits, w/,
  ],
  [
    'a bucket that a later version changed to its layout',
    lambdaRecord(
      { eventName: 'MODIFY' },
      { OldImage: bucketItem(), NewImage: { limits: { M: {} }, w: { S: buildLeaseId(AT_MS, 0.5) } } },
    ),
    /no counters .* limits, w/,
  ],
  [
    'an unknown record of a bucket',
    lambdaRecord({}, { Keys: { PK: { S: 'ns1/BUCKET#a#b#0' }, SK: { S: '#STATE#2' } } }),
    /#STATE#2/,
  ],
  ['an audit record without an action', lambdaRecord({}, { Keys: auditKeys, NewImage: auditKeys }), /timestamp/],
  [
    'an audit record with broken JSON',
    lambdaRecord(
      {},
      {
        Keys: auditKeys,
        NewImage: { ...auditKeys, action: { S: 'x' }, timestamp: { N: '1' }, before: { S: '{' } },
      },
    ),
    /JSON/,
  ],
];

describe('decoding a malformed record', () => {
  test.each(MALFORMED)('a malformed record is poison: %s', (_what, record, reason) => {
    const change = decodeChange(record, LABEL);
    expect(change).toMatchObject({ kind: 'poison', reason: expect.stringMatching(reason) });
  });

  test("poison has the record's ids if they are readable", () => {
    const { kind, sequence, eventId } = decodeChange(lambdaRecord({ eventName: '?' }), LABEL) as never;
    expect({ kind, sequence, eventId }).toEqual({
      kind: 'poison',
      sequence: `${LABEL}/0000000000004421584500000000017450439091`,
      eventId: 'c4ca4238a0b923820dcc509a6f75849b',
    });
  });

  test('decoding never throws', () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), fc.anything(), (anything, NewImage, Keys) => {
        expect(() => decodeChange(anything, LABEL)).not.toThrow();
        expect(() => decodeChange(lambdaRecord({}, { NewImage }), LABEL)).not.toThrow();
        expect(() => decodeChange(lambdaRecord({}, { Keys }), LABEL)).not.toThrow();
        expect(() => decodeChange(lambdaRecord({ userIdentity: anything }), LABEL)).not.toThrow();
      }),
    );
  });
});
