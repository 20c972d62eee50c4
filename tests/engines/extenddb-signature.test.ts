import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { deadlineIn } from '../../src/machine-time.js';
import { failureOf } from '../../src/backends/dynamodb/client/failures.js';
import { leanTransport } from '../../src/backends/dynamodb/client/lean/lean-transport.js';
import { type Engine, findEngine, startEngine } from '../../src/testing/dynamodb/index.js';

const found = findEngine('extenddb');
const note = found.status === 'available' ? '' : ` (skipped: ${found.reason})`;
const missing = async (): Promise<never> => Promise.reject(new Error('Cannot find package'));

/** The conformance suite shows that right signatures are accepted. This shows that they are verified. */
describe.skipIf(found.status === 'unavailable')(`signatures on ExtendDB${note}`, () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await startEngine('extenddb');
  });
  afterAll(async () => engine?.stop());

  const describeMissing = async (secretAccessKey: string): Promise<unknown> => {
    const env = { AWS_ACCESS_KEY_ID: engine.credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey };
    const transport = leanTransport(engine, { packages: { providers: missing, client: missing }, env });
    const thrown: unknown = await transport
      .send('DescribeTable', { TableName: 'missing' }, deadlineIn(20_000))
      .catch((error: unknown) => error);
    transport.close();
    return failureOf(thrown, 'DescribeTable', 'missing');
  };

  test('a request that is signed with another key is refused, and one with the right key is answered', async () => {
    const denied = { kind: 'fatal', error: { code: 'backend.denied' } };
    expect(await describeMissing('another')).toMatchObject(denied);
    const answered = { kind: 'fatal', error: { code: 'schema.mismatch' } };
    expect(await describeMissing(engine.credentials.secretAccessKey)).toMatchObject(answered);
  });
});
