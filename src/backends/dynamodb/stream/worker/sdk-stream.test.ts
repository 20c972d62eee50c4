import type { DynamoDBStreamsClient } from '@aws-sdk/client-dynamodb-streams';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { Table } from '../../client/requests.js';
import { openSdkStream } from './sdk-stream.js';

const ARN = 'arn:aws:dynamodb:us-east-1:123456789012:table/limits/stream/2026-11-15T14:05:30.891';

/** A table of which only the stream is known. */
function tableWith(view: string | null): Table {
  const found = view === null ? {} : { LatestStreamArn: ARN, StreamSpecification: { StreamViewType: view } };
  const send = async (): Promise<never> => ({ Table: found }) as never;
  return { name: 'limits', transport: { send, storeTimeMs: () => 0, close: () => {} }, random: () => 0 };
}

/** A client that returns these answers in order; an error is thrown. */
function clientOf(...answers: unknown[]): { client: DynamoDBStreamsClient; asked: unknown[] } {
  const asked: unknown[] = [];
  const send = async ({ input }: { readonly input: unknown }): Promise<unknown> => {
    asked.push(input);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { client: { send, destroy: () => {} } as never, asked };
}

function failure(name: string, more: object = {}): Error {
  return Object.assign(new Error(`${name} it is`), { name, ...more });
}

async function streamOf(...answers: unknown[]) {
  const { client, asked } = clientOf(...answers);
  return { asked, stream: await openSdkStream(tableWith('NEW_AND_OLD_IMAGES'), { streamsClient: client }) };
}

describe('the stream of a table', () => {
  test('the stream has the label of its ARN, and lists its shards over all pages', async () => {
    const { stream, asked } = await streamOf(
      { StreamDescription: { Shards: [{ ShardId: 'a' }], LastEvaluatedShardId: 'a' } },
      { StreamDescription: { Shards: [{ ShardId: 'b', ParentShardId: 'a' }] } },
    );
    expect(stream.label).toBe('2026-11-15T14:05:30.891');
    expect(await stream.listShards()).toEqual([
      { id: 'a', parentId: null },
      { id: 'b', parentId: 'a' },
    ]);
    expect(asked).toEqual([{ StreamArn: ARN }, { StreamArn: ARN, ExclusiveStartShardId: 'a' }]);
  });

  test.each([
    ['ENABLED', false],
    ['DISABLING', false],
    ['DISABLED', true],
  ])('a stream with the status %s was disabled: %s', async (StreamStatus, isDisabled) => {
    const { stream } = await streamOf({ StreamDescription: { StreamStatus, Shards: [] } });
    await stream.listShards();
    expect(stream.isDisabled?.()).toBe(isDisabled);
  });

  test('the stream is read from its oldest record, or after a given one', async () => {
    const { stream, asked } = await streamOf({ ShardIterator: 'i' }, { ShardIterator: 'j' });
    expect([await stream.locate('a', null), await stream.locate('a', '17')]).toEqual(['i', 'j']);
    expect(asked).toMatchObject([
      { ShardIteratorType: 'TRIM_HORIZON' },
      { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', SequenceNumber: '17' },
    ]);
  });

  test('a page has the next iterator, or null at the end, and an expired iterator reads null', async () => {
    const { stream } = await streamOf(
      { Records: [1], NextShardIterator: 'j' },
      { Records: [2] },
      failure('ExpiredIteratorException'),
    );
    expect(await stream.read('i')).toEqual({ records: [1], next: 'j' });
    expect(await stream.read('j')).toEqual({ records: [2], next: null });
    expect(await stream.read('k')).toBeNull();
  });

  test.each([
    ['TrimmedDataAccessException', {}, 'infrastructure.stream-trimmed'],
    ['AccessDeniedException', {}, 'backend.denied'],
    ['InternalServerError', { $metadata: { httpStatusCode: 500 } }, 'backend.unavailable'],
    ['Error', { code: 'ECONNREFUSED' }, 'backend.unavailable'],
  ])('reading the stream turns %s into an error with a code', async (name, more, code) => {
    const { stream } = await streamOf(failure(name, more), failure(name, more));
    await expect(stream.read('i')).rejects.toMatchObject({ code });
    await expect(stream.locate('a', '1')).rejects.toMatchObject({ code });
  });

  test.each([null, 'KEYS_ONLY'])('opening a stream without both images fails: %s', async (view) => {
    const opened = openSdkStream(tableWith(view), { streamsClient: clientOf().client });
    await expect(opened).rejects.toMatchObject({ code: 'infrastructure.stream-missing' });
  });
});

describe('without the SDK', () => {
  afterEach(() => vi.doUnmock('@aws-sdk/client-dynamodb-streams'));

  test('opening a stream without the SDK names the package to install', async () => {
    vi.doMock('@aws-sdk/client-dynamodb-streams', () => {
      throw new Error('Cannot find package');
    });
    await expect(openSdkStream(tableWith('NEW_AND_OLD_IMAGES'), {})).rejects.toMatchObject({
      code: 'infrastructure.missing-peer',
      message: expect.stringContaining('npm install @aws-sdk/client-dynamodb-streams'),
    });
  });
});
