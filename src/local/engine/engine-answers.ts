import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** Well-formed, but not made with a secret: enough for engines that do not verify signatures. */
const MADE_UP_SIGNATURE =
  'AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/dynamodb/aws4_request, ' +
  `SignedHeaders=host;x-amz-date;x-amz-target, Signature=${'0'.repeat(64)}`;

const BETWEEN_TRIES_MS = 5;

/** Resolves when the engine answers ListTables: with a list if `served`, else with any status. */
export async function answers(
  endpoint: string,
  { served, signal }: { readonly served: boolean; readonly signal: AbortSignal },
): Promise<void> {
  for (;;) {
    const status = await listTables(endpoint, signal);
    if (status !== null && (status === 200 || !served)) return;
    await delay(BETWEEN_TRIES_MS, undefined, { signal });
  }
}

/** The HTTP status of the answer; null if there was no answer. */
function listTables(endpoint: string, signal: AbortSignal): Promise<number | null> {
  return new Promise((resolve) => {
    request(endpoint, {
      method: 'POST',
      agent: false,
      signal,
      headers: {
        'content-type': 'application/x-amz-json-1.0',
        'x-amz-target': 'DynamoDB_20120810.ListTables',
        'x-amz-date': '20260101T000000Z',
        authorization: MADE_UP_SIGNATURE,
      },
    })
      .on('response', (response) => {
        response.resume();
        resolve(response.statusCode ?? null);
      })
      .on('error', () => resolve(null))
      .end('{}');
  });
}
