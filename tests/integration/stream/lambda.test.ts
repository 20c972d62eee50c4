import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deadlineIn } from '../../../src/machine-time.js';
import { buildUsageKey } from '../../../src/backends/dynamodb/table/keys.js';
import { decodeUsage, encodeNamespace } from '../../../src/backends/dynamodb/table/records.js';
import { readItem, sendRepeatable } from '../../../src/backends/dynamodb/client/requests.js';
import { USAGE_WINDOWS, type UsageWindow, windowStart } from '../../../src/core/usage/usage.js';
import { createStreamHandler, type StreamEvent } from '../../../src/backends/dynamodb/stream/lambda.js';
import { type DynamoWorld, ENGINE, startWorld } from '../../support/dynamodb/world.js';
import { archiveInMemory } from '../../support/stream/world.js';

interface RecordedEvent extends StreamEvent {
  readonly Records: readonly {
    readonly eventID: string;
    readonly eventSourceARN: string;
    readonly userIdentity?: object;
    readonly dynamodb: { readonly SequenceNumber: string; readonly Keys: { readonly PK: { readonly S: string } } };
  }[];
}

function recorded(name: string): RecordedEvent {
  const place = new URL(`../../fixtures/stream/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(place, 'utf8')) as RecordedEvent;
}

const HOUR_MS = 1_800_000_000_000;

describe.skipIf(ENGINE.missing)(`the Lambda handler${ENGINE.note}`, () => {
  let world: DynamoWorld;

  beforeAll(async () => {
    world = await startWorld();
  });
  afterAll(async () => world?.[Symbol.asyncDispose]());

  /** Registers the namespace of a recorded event in this table, and returns its id. */
  const register = async ({ Records }: RecordedEvent): Promise<string> => {
    const bucket = Records.find(({ dynamodb }) => dynamodb.Keys.PK.S.includes('/BUCKET#'));
    const ns = bucket?.dynamodb.Keys.PK.S.split('/')[0] ?? '';
    const Item = encodeNamespace('id', { id: ns, name: ns, status: 'active', createdAtMs: 0 }, 0);
    await sendRepeatable(world.table, 'PutItem', { TableName: world.table.name, Item }, deadlineIn(10_000));
    return ns;
  };
  const usageOf = async (ns: string, window: UsageWindow = 'hourly') => {
    const key = buildUsageKey(ns, 'user-1', 'gpt-4', window, windowStart(window, HOUR_MS));
    const item = await readItem(world.table, key, deadlineIn(10_000));
    return item === undefined ? undefined : decodeUsage(item);
  };
  const handlerOf = (archive = archiveInMemory()) => {
    const { endpoint, region } = world.engine;
    const lines: string[] = [];
    const table = world.table.name;
    return {
      archive,
      lines,
      handle: createStreamHandler({ table, endpoint, region, archive, log: (line) => lines.push(line) }),
    };
  };

  test.each(['dynoxide', 'extenddb', 'dynamodb-local', 'aws'])(
    'the Lambda handler counts an event of %s once, also if it is delivered twice',
    async (name) => {
      const event = recorded(name);
      const ns = await register(event);
      const { handle, archive } = handlerOf();
      for (const _ of [1, 2]) expect(await handle(event)).toEqual({ batchItemFailures: [] });
      const consumedMilli = new Map([
        ['rpm', 2_000],
        ['tpm', 500_000],
      ]);
      // Lambda writes all windows at once, because there may be no further event.
      for (const window of USAGE_WINDOWS) {
        expect(await usageOf(ns, window)).toMatchObject({ acquires: 2, consumedMilli });
      }
      const expired = event.Records.filter(({ userIdentity }) => userIdentity !== undefined);
      expect([...archive.files.keys()]).toEqual(
        expired.map(({ eventID }) => `audit/namespace=${ns}/year=2020/month=09/day=13/${eventID}.jsonl.gz`),
      );
    },
  );

  test('the Lambda handler archives expired records as a line of JSON, and no deleted ones', async () => {
    const event = recorded('extenddb');
    const ns = await register(event);
    const { handle, archive } = handlerOf();
    await handle(event);
    const [bytes] = archive.files.values();
    expect(gunzipSync(bytes!).toString()).toBe(
      `${JSON.stringify({
        namespace: ns,
        id: '01EXPIRED',
        at: '2020-09-13T12:26:40.000Z',
        principal: 'ops',
        action: 'entity.create',
        subject: 'user-1',
        before: null,
        after: { id: 'user-1' },
      })}\n`,
    );
    expect(archive.files.size).toBe(1);
  });

  test('the Lambda handler names the record whose archiving failed, and loses nothing', async () => {
    const event = recorded('aws');
    await register(event);
    const { handle, archive, lines } = handlerOf();
    archive.failNext = 1;
    const failed = event.Records.find(({ userIdentity }) => userIdentity !== undefined);
    const itemIdentifier = failed?.dynamodb.SequenceNumber;
    expect(await handle(event)).toEqual({ batchItemFailures: [{ itemIdentifier }] });
    expect(lines.join('\n')).toContain('the archive is full');
    expect(await handle({ Records: [failed!] })).toEqual({ batchItemFailures: [] });
    expect(archive.files.size).toBe(1);
  });

  test('the Lambda handler names the first of several failed records', async () => {
    const { endpoint, region } = world.engine;
    const event = recorded('dynoxide');
    const handle = createStreamHandler({ table: 'no-such-table', endpoint, region, log: () => {} });
    const first = event.Records.find(({ dynamodb }) => dynamodb.Keys.PK.S.includes('/BUCKET#'));
    const itemIdentifier = first?.dynamodb.SequenceNumber;
    expect(await handle(event)).toEqual({ batchItemFailures: [{ itemIdentifier }] });
  });

  test('the Lambda handler reports records that it cannot understand, and counts the others', async () => {
    const event = recorded('dynamodb-local');
    const ns = await register(event);
    const insert = event.Records.find(({ dynamodb }) => dynamodb.Keys.PK.S.includes('/BUCKET#'))!;
    const spoilt = (change: object) => ({ ...insert, dynamodb: { ...insert.dynamodb, ...change } });
    const poison = [
      {},
      null,
      spoilt({ SequenceNumber: '9001', NewImage: undefined }),
      spoilt({ SequenceNumber: '9002', NewImage: { ac: { N: 'many' } } }),
      spoilt({ SequenceNumber: '9003', NewImage: { b_rpm_tc: { M: { total: { N: '1' } } } } }),
      // A format of a later version.
      spoilt({ SequenceNumber: '9004', NewImage: { format: { N: '2' }, limits: { M: {} } } }),
    ];
    const { handle, lines } = handlerOf();
    const Records = [...poison, ...event.Records] as StreamEvent['Records'];
    expect(await handle({ Records: [...event.Records.slice(0, 1), ...Records] })).toEqual({ batchItemFailures: [] });
    expect(await usageOf(ns)).toMatchObject({ acquires: 2 });
    expect(lines.filter((line) => line.includes('was skipped'))).toHaveLength(poison.length);
    expect(lines.at(-1)).toContain('"poison":6');
  });

  test('the Lambda handler reports an unknown attribute, and counts the known ones', async () => {
    const known = await register(recorded('aws'));
    const told = JSON.stringify(recorded('aws'))
      .replaceAll(`"${known}/`, '"later-version/')
      .replaceAll('"NewImage":{', '"NewImage":{"zz":{"N":"1"},');
    const event = JSON.parse(told) as RecordedEvent;
    const ns = await register(event);
    const { handle, lines } = handlerOf();
    expect(await handle(event)).toEqual({ batchItemFailures: [] });
    expect(await usageOf(ns)).toMatchObject({ acquires: 2 });
    expect(lines.filter((line) => line.includes('attribute zz, which this version does not know'))).toHaveLength(1);
  });
});
