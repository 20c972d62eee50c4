import { getEventListeners } from 'node:events';
import { describe, expect, test, vi } from 'vitest';
import { connected } from '../../tests/support/server/connected-client.js';
import { Limit } from '../core/limit.js';
import { RateLimitExceeded } from '../core/rate-limit-exceeded.js';
import { HeadgateClient } from './client.js';
import { RemoteError } from './http.js';
import type { RemoteLease } from './remote-lease.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 1 } };

describe('the client', () => {
  test('a grant has the lease and the statuses of the library', async () => {
    const { client } = await connected();
    const decision = await client.tryAcquire(ASK);
    expect(decision).toMatchObject({ granted: true, decidedBy: 'store' });
    expect(decision.statuses[0]).toMatchObject({ available: 9, limit: Limit.perMinute('rpm', 10) });
  });

  test('a grant, a denial and a status say that a limit is near, as the library does', async () => {
    const { client, limiter } = await connected();
    await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 10, { warnAt: 0.75 })] });
    expect((await client.tryAcquire({ ...ASK, consume: { rpm: 7 } })).statuses[0]?.near).toBe(undefined);
    const decision = await client.tryAcquire(ASK);
    expect(decision.statuses[0]).toMatchObject({ near: true, available: 2 });
    expect((await client.tryAcquire({ ...ASK, consume: { rpm: 3 } })).statuses[0]).toMatchObject({ near: true });
    expect(await client.status({ entityId: 'user-1', resource: 'gpt-4' })).toMatchObject([{ near: true }]);
  });

  test('an ask that may be cut takes what there is, and its lease says how much', async () => {
    const { client, available } = await connected();
    await client.acquire({ ...ASK, consume: { rpm: 7 } });
    const decision = await client.tryAcquire({ ...ASK, consume: { rpm: 9 }, atMost: 'rpm', portable: true });
    expect(decision).toMatchObject({ granted: true, lease: { consumed: { rpm: 3 } } });
    if (decision.granted) await decision.lease.rollback();
    expect(await available()).toMatchObject({ rpm: 3 });
    await expect(client.acquire({ ...ASK, atMost: 'tpm' })).rejects.toMatchObject({ code: 'input.invalid' });
  });

  test('a denial is a value of tryAcquire and an error of acquire, with the exact wait', async () => {
    const { client } = await connected();
    await client.acquire({ ...ASK, consume: { rpm: 10 } });
    const decision = await client.tryAcquire(ASK);
    expect(decision).toMatchObject({ granted: false, reason: 'exhausted' });
    const error: unknown = await client.acquire(ASK).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RateLimitExceeded);
    expect((error as RateLimitExceeded).violations[0]).toMatchObject({ entityId: 'user-1', exceeded: true });
  });

  test('run commits when its function returns, and rolls back when it throws', async () => {
    const { client, available } = await connected();
    const ask = { ...ASK, consume: { rpm: 3, slots: 1 } };
    await client.run(ask, (lease) => lease.settle({ rpm: 5 }));
    expect(await available()).toEqual({ rpm: 5, slots: 1 });
    await expect(client.run(ask, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
    expect(await available()).toEqual({ rpm: 5, slots: 1 });
  });

  test('run gives rates back when its function throws, except those that were settled', async () => {
    const { client, available } = await connected();
    await expect(client.run(ASK, () => Promise.reject(new Error('mine')))).rejects.toThrow('mine');
    expect(await available()).toMatchObject({ rpm: 10 });
    const work = async (lease: RemoteLease): Promise<never> => {
      await lease.settle({ rpm: 4 });
      throw new Error('mine');
    };
    await expect(client.run({ ...ASK, consume: { rpm: 1, slots: 1 } }, work)).rejects.toThrow('mine');
    expect(await available()).toEqual({ rpm: 6, slots: 1 });
  });

  test('run gives back what only a parent or an unlimited limit counted, as the library does', async () => {
    const { client, limiter } = await connected();
    await limiter.config.setSystem({ limits: [Limit.perDay('rpd', 10), Limit.unlimited('free')] });
    await limiter.entities.create({ id: 'team' });
    await limiter.entities.create({ id: 'user-1', parentId: 'team', cascade: true });
    await limiter.config.setEntity('team', 'gpt-4', { limits: [Limit.perDay('tpd', 10)] });
    const work = async (lease: RemoteLease): Promise<never> => {
      await lease.settle({ rpd: 4 });
      throw new Error('mine');
    };
    const ask = { ...ASK, consume: { rpd: 1, tpd: 5, free: 7 } };
    await expect(client.run(ask, work)).rejects.toThrow('mine');
    expect(await limiter.available({ entityId: 'team', resource: 'gpt-4' })).toEqual({ tpd: 10 });
    const { items } = await limiter.usage.query({ entityId: 'user-1', resource: 'gpt-4', window: 'hourly' });
    expect(items).toMatchObject([{ tokens: { rpd: 4 } }]);
    expect(items[0]?.tokens).not.toHaveProperty('free');
  });

  test.each(['{}', '[]', '{"status":"ok"}', '{"lease":null,"statuses":null,"available":null}'])(
    'the answer %s of another server is an outage, whatever was asked',
    async (body) => {
      const fetching = async (): Promise<Response> => new Response(body, { status: 200 });
      const client = new HeadgateClient('http://headgate.test', { fetch: fetching, retries: 0 });
      const stored = { id: 'lease', token: 'token', expiresAt: null, consumed: {}, entityId: 'a', resource: 'r' };
      const lease = client.resume(stored);
      const calls = [client.acquire(ASK), client.peek(ASK), client.status(ASK), client.available(ASK), lease.commit()];
      for (const call of calls) await expect(call).rejects.toMatchObject({ code: 'backend.unavailable' });
      expect(lease.state).toBe('open');
    },
  );

  test.each(['acquire', 'peek', 'settle', 'commit', 'adjust'] as const)(
    '%s with an undefined amount is refused instead of leaving the amount out',
    async (call) => {
      const { client, available } = await connected();
      const lease = await client.acquire({ ...ASK, portable: true });
      const amounts = { rpm: 1, slots: undefined } as unknown as { rpm: number };
      const calling =
        call === 'acquire' || call === 'peek' ? client[call]({ ...ASK, consume: amounts }) : lease[call](amounts);
      await expect(calling).rejects.toMatchObject({ code: 'input.invalid' });
      expect(await available()).toEqual({ rpm: 9, slots: 1 });
    },
  );

  test('a denial has the statuses of all limits, as in the library', async () => {
    const { client, limiter } = await connected();
    await client.acquire({ ...ASK, consume: { slots: 1 } });
    const ask = { ...ASK, consume: { rpm: 2, slots: 1 } };
    const [decision, same] = [await client.tryAcquire(ask), await limiter.tryAcquire(ask)];
    const named = (statuses: typeof same.statuses) => statuses.map(({ limit, available }) => [limit.name, available]);
    expect(named(decision.statuses)).toEqual(named(same.statuses));
    expect(decision.statuses).toHaveLength(2);
    expect(decision).toMatchObject({ granted: false, violations: [{ limit: { name: 'slots' } }] });
  });

  test('release of a lease that has ended changes nothing', async () => {
    const { client, sent } = await connected();
    const lease = await client.acquire({ ...ASK, consume: { slots: 1 } });
    await lease.commit();
    await lease.release();
    expect(sent).toEqual(['/v1/acquire', '/v1/leases/commit']);
  });

  test('run extends its lease while its function runs', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const { client, sent } = await connected();
      const work = async (): Promise<void> => {
        await vi.advanceTimersByTimeAsync(20_000);
        await vi.waitUntil(() => sent.includes('/v1/leases/extend'));
      };
      await client.run({ ...ASK, consume: { slots: 1 }, leaseTtlMs: 60_000 }, work);
      expect(sent).toEqual(['/v1/acquire', '/v1/leases/extend', '/v1/leases/commit']);
      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  test.each([undefined, 60_000])(
    'run extends the lease of a generator that is iterated late at once, with a lifetime of %s',
    async (leaseTtlMs) => {
      // Not `performance`: the clock of the store is shared by all tests of this process.
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
      try {
        const { client, sent } = await connected();
        const ask = { ...ASK, consume: { slots: 1 }, ...(leaseTtlMs === undefined ? {} : { leaseTtlMs }) };
        const chunks = await client.run(ask, async function* () {
          yield 1;
          yield 2;
        });
        await vi.advanceTimersByTimeAsync(59_000);
        await chunks.next();
        await vi.advanceTimersByTimeAsync(0);
        expect(sent).toEqual(['/v1/acquire', '/v1/leases/extend']);
        await chunks.return(undefined);
        expect(vi.getTimerCount()).toBe(0);
      } finally {
        vi.useRealTimers();
      }
    },
  );

  test('run returns the result if the commit fails, and reports the failure', async () => {
    const reported: string[] = [];
    const { fetching, credential } = await connected();
    const failing: typeof fetch = (input, init) =>
      input === 'http://headgate.test/v1/leases/commit' ? Promise.reject(new TypeError('lost')) : fetching(input, init);
    const client = new HeadgateClient('http://headgate.test', {
      token: credential.secret,
      fetch: failing,
      retries: 0,
      onError: (_, where) => reported.push(where),
    });
    expect(await client.run(ASK, () => 'done')).toBe('done');
    expect(reported).toEqual(['run commit']);
  });

  test('the statuses of a paused bucket have the same pause as in the library', async () => {
    const { client, limiter } = await connected();
    const key = { entityId: 'user-1', resource: 'gpt-4' };
    for (const forMs of [60_000, 'forever'] as const) {
      const paused = await limiter.pause({ ...key, forMs, reason: 'vendor' });
      for (const statuses of [await client.status(key), await client.peek(ASK)]) {
        expect(statuses.map((status) => status.paused)).toEqual(statuses.map(() => paused));
      }
    }
  });

  test('an entity that is paused without an end is the same error as in the library', async () => {
    const { client, limiter } = await connected();
    await limiter.pause({ entityId: 'user-1', forMs: 'forever', reason: 'revoked' });
    const error: unknown = await client.acquire(ASK).catch((thrown: unknown) => thrown);
    const same: unknown = await limiter.acquire(ASK).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'entity.paused', paused: { until: null, reason: 'revoked' } });
    expect((error as Error).message).toBe((same as Error).message);
  });

  test.each([
    ['is cut off', '{"granted":true,"le'],
    ['is a page', '<html>'],
    ['is empty', ''],
    ['is that of another program', '{"ok":true}'],
    ['is a list', '[]'],
    ['is null', 'null'],
  ])('a grant whose body %s is an outage, not a TypeError', async (_, text) => {
    const answering = (): Promise<Response> => Promise.resolve(new Response(text, { status: 200 }));
    const client = new HeadgateClient('http://headgate.test', { fetch: answering });
    await expect(client.acquire(ASK)).rejects.toMatchObject({ code: 'backend.unavailable' });
  });

  test('a grant of a newer server, whose limits have options that this client does not know, is no error', async () => {
    const { fetching, credential, available } = await connected();
    const newer: typeof fetch = async (input, init) => {
      const response = await fetching(input, init);
      const text = (await response.text()).replaceAll('"rpm:10/min"', '"rpm:10/min!someday=1"');
      return new Response(text, { status: response.status, headers: response.headers });
    };
    const client = new HeadgateClient('http://headgate.test', { token: credential.secret, fetch: newer });
    await client.run({ ...ASK, consume: { rpm: 1, slots: 1 } }, async () => {});
    expect(await available()).toEqual({ rpm: 9, slots: 1 });
    const [rpm] = await client.status(ASK);
    expect(rpm?.limit).toEqual(Limit.perMinute('rpm', 10));
    await expect(client.acquire({ ...ASK, consume: { rpm: 10 } })).rejects.toBeInstanceOf(RateLimitExceeded);
  });

  test('an answer of another program does not end a lease', async () => {
    const { fetching, credential } = await connected();
    let isOther = false;
    const answering: typeof fetch = async (...args) => (isOther ? Response.json({ ok: true }) : fetching(...args));
    const client = new HeadgateClient('http://headgate.test', {
      token: credential.secret,
      fetch: answering,
      retries: 0,
    });
    const lease = await client.acquire({ ...ASK, consume: { slots: 1 } });
    isOther = true;
    await expect(lease.commit()).rejects.toMatchObject({ code: 'backend.unavailable' });
    await expect(client.available(ASK)).rejects.toMatchObject({ code: 'backend.unavailable' });
    await expect(client.peek(ASK)).rejects.toMatchObject({ code: 'backend.unavailable' });
    isOther = false;
    await lease.commit();
    expect(await client.available(ASK)).toMatchObject({ slots: 1 });
  });

  test('an error of a proxy is an outage, whatever its code is', async () => {
    let sent = 0;
    const answering: typeof fetch = async () => {
      sent += 1;
      return Response.json({ code: 'BAD_GATEWAY', message: 'upstream' }, { status: 502 });
    };
    const client = new HeadgateClient('http://headgate.test', { fetch: answering, retries: 1 });
    await expect(client.available(ASK)).rejects.toMatchObject({ code: 'backend.unavailable', retryable: true });
    expect(sent).toBe(2);
  });

  test.each([
    ['a token of two lines', 'http://127.0.0.1:9', 'hg_do-not-print\nhg_second'],
    ['an address with a password', 'http://user:do-not-print@127.0.0.1:9', 'hg_x'],
  ])('%s is refused without printing it', async (_, url, token) => {
    const failed = async (): Promise<unknown> => new HeadgateClient(url, { token, retries: 0 }).acquire(ASK);
    const error = (await failed().catch((thrown: unknown) => thrown)) as Error;
    expect(error).toMatchObject({ code: 'input.invalid', got: expect.stringContaining('hidden') });
    expect(`${error.message} ${String(error.cause)}`).not.toContain('do-not-print');
  });

  test('a token may end with the line break of its file, and be empty', async () => {
    const { fetching, credential } = await connected();
    const options = { token: `${credential.secret}\n`, fetch: fetching };
    expect(await new HeadgateClient('http://headgate.test', options).tryAcquire(ASK)).toMatchObject({ granted: true });
    expect(() => new HeadgateClient('http://headgate.test', { token: '' })).not.toThrow();
  });

  test('a timeout longer than a timer can be is not over at once', async () => {
    const { fetching, credential } = await connected();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const slow: typeof fetch = async (input, init) => {
      await vi.advanceTimersByTimeAsync(60_000);
      init?.signal?.throwIfAborted();
      return fetching(input, init);
    };
    const options = { token: credential.secret, fetch: slow, timeoutMs: Number.POSITIVE_INFINITY };
    const asked = new HeadgateClient('http://headgate.test', options).tryAcquire(ASK);
    await expect(asked.finally(() => vi.useRealTimers())).resolves.toMatchObject({ granted: true });
  });

  test('an abort while the body arrives rejects with the reason of the abort', async () => {
    const caller = new AbortController();
    const answering: typeof fetch = (_, init) => {
      const body = new ReadableStream({
        start: (controller) => init?.signal?.addEventListener('abort', () => controller.error(init.signal?.reason)),
      });
      return Promise.resolve(new Response(body));
    };
    const client = new HeadgateClient('http://headgate.test', { fetch: answering });
    const acquiring = client.acquire({ ...ASK, signal: caller.signal });
    caller.abort(new Error('mine'));
    await expect(acquiring).rejects.toThrow('mine');
  });

  test('a request leaves no listener in the signal of its caller and no timer', async () => {
    const { client } = await connected();
    const caller = new AbortController();
    const timersBefore = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    for (let asked = 0; asked < 3; asked++) await client.tryAcquire({ ...ASK, signal: caller.signal });
    expect(getEventListeners(caller.signal, 'abort')).toHaveLength(0);
    expect(process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout')).toHaveLength(timersBefore);
  });

  test('a server that does not answer within the timeout is an outage that names the time', async () => {
    const silent: typeof fetch = (_, init) =>
      new Promise((_resolve, reject) => {
        init?.signal?.addEventListener('abort', () => reject(init.signal?.reason as Error));
      });
    const client = new HeadgateClient('http://headgate.test', { fetch: silent, timeoutMs: 1, retries: 0 });
    await expect(client.acquire(ASK)).rejects.toThrow(
      /did not answer: TimeoutError: The request took longer than 1 ms/,
    );
  });

  test('an operation of a lease whose answer is lost is sent again, and counts once', async () => {
    const { client, available, sent, loseNext } = await connected();
    const lease = await client.acquire({ ...ASK, portable: true });
    loseNext();
    await lease.adjust({ rpm: 2 });
    expect(sent).toEqual(['/v1/acquire', '/v1/leases/adjust', '/v1/leases/adjust']);
    expect(await available()).toMatchObject({ rpm: 7 });
  });

  test('an acquire whose answer is lost is not sent again, because it may have been granted', async () => {
    const { client, sent, loseNext } = await connected();
    loseNext();
    await expect(client.acquire(ASK)).rejects.toMatchObject({ code: 'backend.unavailable' });
    expect(sent).toEqual(['/v1/acquire']);
  });

  test('a lease without a token can be committed, and says what it needs for anything else', async () => {
    const { client } = await connected();
    const lease = await client.acquire(ASK);
    await expect(lease.settle({ rpm: 2 })).rejects.toThrow('portable');
    await lease.commit();
    expect(lease.state).toBe('committed');
  });

  test('an error of the server has its code, its status and its sentence', async () => {
    const { client, fetching } = await connected();
    const error: unknown = await client.tryAcquire({ ...ASK, consume: { rpn: 1 } }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RemoteError);
    expect(error).toMatchObject({ code: 'input.invalid', httpStatus: 400 });
    const stranger = new HeadgateClient('http://headgate.test', { token: 'hg_wrong', fetch: fetching });
    await expect(stranger.tryAcquire(ASK)).rejects.toMatchObject({ code: 'access.missing', httpStatus: 401 });
  });

  test('a server that does not answer is an outage', async () => {
    const client = new HeadgateClient('http://127.0.0.1:9', { retries: 0 });
    await expect(client.status({ entityId: 'a', resource: 'b' })).rejects.toMatchObject({
      code: 'backend.unavailable',
    });
  });
});
