import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type AwsCredentials, type Signable, Signer, timestamp } from './sign.js';

const EXAMPLE = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const TIME = '20150830T123600Z';

/** The value of the header `Authorization`. */
function authorize(signer: Signer, request: Signable, body: string, keys: AwsCredentials, atTime: string): string {
  const { start, sign } = signer.prepare(request, keys, atTime);
  return `${start}${sign(body)}`;
}

/** Cases of the test suite that AWS publishes for Signature Version 4, with their signatures. */
test.each([
  ['get-vanilla', 'GET', [], '5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31'],
  ['post-vanilla', 'POST', [], '5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b'],
  [
    'post-header-key-sort',
    'POST',
    [['my-header1', 'value1']] as const,
    'c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c',
  ],
])('the signature of %s is the one that AWS publishes', (_, method, more, signature) => {
  const headers = [['host', 'example.amazonaws.com'], ...more, ['x-amz-date', TIME]] as const;
  const signer = new Signer('us-east-1', 'service');
  const names = headers.map(([name]) => name).join(';');
  expect(authorize(signer, { method, path: '/', headers: headers.flat() }, '', EXAMPLE, TIME)).toBe(
    `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${names}, Signature=${signature}`,
  );
});

/** The signature that the SDK's own signer makes, and the headers that it covers. */
async function signedBySdk(region: string, path: string, body: string, credentials: AwsCredentials, atMs: number) {
  const client = new DynamoDBClient({ region, credentials });
  const signer = await client.config.signer();
  const host = 'table.example';
  const target = 'DynamoDB_20120810.UpdateItem';
  const request = {
    method: 'POST',
    protocol: 'https:',
    hostname: host,
    path,
    query: {},
    headers: { host, 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': target } as Record<string, string>,
    body,
  };
  const sign = signer.sign.bind(signer) as unknown as (
    unsigned: typeof request,
    options: object,
  ) => Promise<typeof request>;
  const { headers } = await sign(request, {
    signingDate: new Date(atMs),
    signingRegion: region,
    signingService: 'dynamodb',
  });
  client.destroy();
  return headers;
}

test('the signature is the one of the SDK for any body, path, region, credentials and time', async () => {
  const text = fc.string({ minLength: 1, maxLength: 40 });
  const keys = fc.record(
    { accessKeyId: fc.stringMatching(/^[A-Z0-9]{16}$/), secretAccessKey: text, sessionToken: fc.base64String() },
    { requiredKeys: ['accessKeyId', 'secretAccessKey'] },
  );
  const segments = fc.array(
    fc.stringMatching(/^[a-z!'()*~.% -]{1,8}$/).filter((part) => !/^\.+$/.test(part)),
    { maxLength: 3 },
  );
  const region = fc.constantFrom('us-east-1', 'cn-north-1', 'us-gov-west-1');
  const atMs = fc.integer({ min: 0, max: 4_000_000_000 }).map((seconds) => seconds * 1_000);
  const cases = fc.record({ keys, segments, region, atMs, body: fc.string({ unit: 'binary', maxLength: 200 }) });
  await fc.assert(
    fc.asyncProperty(cases, async ({ keys: credentials, segments: parts, region: where, atMs: nowMs, body }) => {
      const path = `/${parts.map(encodeURIComponent).join('/')}`;
      const { authorization, ...headers } = await signedBySdk(where, path, body, credentials, nowMs);
      const [, names = ''] = /SignedHeaders=([^,]+)/.exec(authorization ?? '') ?? [];
      const covered = names.split(';').flatMap((name) => [name, headers[name] ?? '']);
      const signer = new Signer(where, 'dynamodb');
      const own = authorize(signer, { method: 'POST', path, headers: covered }, body, credentials, timestamp(nowMs));
      expect(own).toBe(authorization);
    }),
    { numRuns: 60 },
  );
});

test('a signer that has cached a key signs as a new one does after the day, the credentials or neither changed', () => {
  const other = { accessKeyId: 'OTHER', secretAccessKey: 'other' };
  const used = new Signer('eu-west-1', 'dynamodb');
  for (const [credentials, atTime] of [
    [EXAMPLE, '20270115T235959Z'],
    [EXAMPLE, '20270116T000000Z'],
    [other, '20270116T000000Z'],
    [EXAMPLE, '20270115T235959Z'],
    [{ ...EXAMPLE, secretAccessKey: 'rotated' }, '20270115T235959Z'],
  ] as const) {
    const request = { method: 'POST', path: '/', headers: ['x-amz-date', atTime] };
    const expected = authorize(new Signer('eu-west-1', 'dynamodb'), request, '{}', credentials, atTime);
    expect(authorize(used, request, '{}', credentials, atTime)).toBe(expected);
    expect(authorize(used, request, '{}', credentials, atTime)).toBe(expected);
  }
});

test('a timestamp has whole seconds of UTC', () => {
  expect(timestamp(Date.parse('2027-01-15T08:00:00.999Z'))).toBe('20270115T080000Z');
  expect(timestamp(Date.parse('2027-01-15T08:00:01.000Z'))).toBe('20270115T080001Z');
  expect(timestamp(Date.parse('2027-01-15T08:00:00.001Z'))).toBe('20270115T080000Z');
});
