import { expect, test, vi } from 'vitest';
import { type AwsCredentials, CredentialCache } from './sign.js';
import { environmentCredentials } from './settings.js';

const NOW_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;

/** A source that the test answers by hand. */
function source() {
  const fetches: { readonly renewed: boolean; answer: (keys: AwsCredentials | Error) => void }[] = [];
  const cache = new CredentialCache(
    async (renewed) =>
      new Promise((resolve, reject) => {
        fetches.push({ renewed, answer: (keys) => (keys instanceof Error ? reject(keys) : resolve(keys)) });
      }),
  );
  return { fetches, cache };
}

const keysUntil = (atMs?: number): AwsCredentials => ({
  accessKeyId: `until-${atMs}`,
  secretAccessKey: 's',
  ...(atMs === undefined ? {} : { expiration: new Date(atMs) }),
});

test('concurrent requests share one fetch, and later ones get its credentials without a promise', async () => {
  const { fetches, cache } = source();
  const keys = keysUntil();
  const [first, second] = [cache.take(NOW_MS), cache.take(NOW_MS)];
  fetches[0]!.answer(keys);
  expect([await first, await second]).toEqual([keys, keys]);
  expect(cache.take(NOW_MS + 1e12)).toBe(keys);
  expect(fetches).toHaveLength(1);
});

test('credentials that expire within 5 minutes are used while others are fetched, once', async () => {
  const { fetches, cache } = source();
  const [old, fresh] = [keysUntil(NOW_MS + 10 * MINUTE_MS), keysUntil(NOW_MS + 60 * MINUTE_MS)];
  const first = cache.take(NOW_MS);
  fetches[0]!.answer(old);
  await first;
  expect(cache.take(NOW_MS + 5 * MINUTE_MS - 1)).toBe(old);
  expect(fetches).toHaveLength(1);
  expect(cache.take(NOW_MS + 5 * MINUTE_MS)).toBe(old);
  expect(cache.take(NOW_MS + 6 * MINUTE_MS)).toBe(old);
  expect(fetches).toHaveLength(2);
  fetches[1]!.answer(fresh);
  await new Promise(setImmediate);
  expect(cache.take(NOW_MS + 6 * MINUTE_MS)).toBe(fresh);
});

test('a failed renewal is tried again after 30 s, and fails requests only when the credentials expire', async () => {
  const { fetches, cache } = source();
  const old = keysUntil(NOW_MS + 5 * MINUTE_MS);
  const first = cache.take(NOW_MS);
  fetches[0]!.answer(old);
  await first;
  expect(cache.take(NOW_MS)).toBe(old);
  fetches[1]!.answer(new Error('no route'));
  await new Promise(setImmediate);
  expect(cache.take(NOW_MS + 29_999)).toBe(old);
  expect(fetches).toHaveLength(2);
  expect(cache.take(NOW_MS + 30_000)).toBe(old);
  expect(fetches).toHaveLength(3);
  fetches[2]!.answer(new Error('no route'));
  await new Promise(setImmediate);
  const late = cache.take(NOW_MS + 5 * MINUTE_MS - 10_000);
  fetches[3]!.answer(new Error('no route'));
  await expect(late).rejects.toThrow('no route');
});

test('credentials that were refused are fetched again by the next request, and not twice', async () => {
  const { fetches, cache } = source();
  const [old, fresh] = [keysUntil(), keysUntil(NOW_MS + 60 * MINUTE_MS)];
  const first = cache.take(NOW_MS);
  fetches[0]!.answer(old);
  await first;
  cache.refuse(old);
  const next = cache.take(NOW_MS);
  fetches[1]!.answer(fresh);
  expect(await next).toBe(fresh);
  // The refusal of a request that was signed before.
  cache.refuse(old);
  expect(cache.take(NOW_MS)).toBe(fresh);
  expect(fetches.map(({ renewed }) => renewed)).toEqual([false, true]);
});

test('a fetch that failed is repeated by the next request', async () => {
  const { fetches, cache } = source();
  const first = cache.take(NOW_MS);
  fetches[0]!.answer(new Error('no metadata service'));
  await expect(first).rejects.toThrow('no metadata service');
  const second = cache.take(NOW_MS);
  fetches[1]!.answer(keysUntil());
  expect(await second).toEqual(keysUntil());
});

const KEYS = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };

test.each([
  [{ accessKeyId: 'id', secretAccessKey: 'secret' }, KEYS],
  [
    { accessKeyId: 'id', secretAccessKey: 'secret' },
    { ...KEYS, AWS_SESSION_TOKEN: '' },
  ],
  [
    { accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: 't' },
    { ...KEYS, AWS_SESSION_TOKEN: 't' },
  ],
  [
    { accessKeyId: 'id', secretAccessKey: 'secret', expiration: new Date(NOW_MS) },
    { ...KEYS, AWS_CREDENTIAL_EXPIRATION: new Date(NOW_MS).toISOString() },
  ],
  [null, { AWS_ACCESS_KEY_ID: 'id' }],
  [null, { AWS_SECRET_ACCESS_KEY: 'secret' }],
  [null, {}],
])('the credentials are %j in the environment %j', (expected, env) => {
  expect(environmentCredentials(env)).toEqual(expected);
});

test('a provider that never answers fails after 30 s, and the next request asks it again', async () => {
  vi.useFakeTimers();
  try {
    let fetches = 0;
    const cache = new CredentialCache(async () => {
      fetches += 1;
      return fetches === 1 ? new Promise(() => {}) : { accessKeyId: 'a', secretAccessKey: 'b' };
    });
    const first = Promise.resolve(cache.take(0));
    const failed = expect(first).rejects.toMatchObject({ name: 'CredentialsProviderError' });
    await vi.advanceTimersByTimeAsync(30_000);
    await failed;
    expect(await cache.take(30_000)).toMatchObject({ accessKeyId: 'a' });
  } finally {
    vi.useRealTimers();
  }
});
