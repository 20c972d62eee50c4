import { describe, expect, test } from 'vitest';
import { type Credential, credentialOf, requestServer } from '../../../tests/support/server/request-server.js';
import type { ServerOptions } from '../server.js';

const ASK = { entityId: 'user-1', resource: 'gpt-4', consume: { slots: 1 } };

/** A server whose slots are held, so that an ask waits until its client leaves. */
async function crowded(options: ServerOptions) {
  const { send, limiter } = await requestServer(options);
  await limiter.acquire({ ...ASK, consume: { slots: 2 } });
  const wait = (as: Credential, timeoutMs = 60_000) => {
    const leaving = new AbortController();
    const body = { ...ASK, wait: { timeoutMs } };
    const answer = send('POST /v1/acquire', { as, body, signal: leaving.signal });
    const leave = async (): Promise<void> => {
      leaving.abort();
      await answer.catch(() => {});
    };
    return { answer, leave };
  };
  const waiting = async (count: number): Promise<void> => {
    await expect.poll(() => limiter.waiting().reduce((sum, { depth }) => sum + depth, 0)).toBe(count);
  };
  return { send, wait, waiting };
}

describe('calls that wait at a server', () => {
  const [web, jobs] = [credentialOf(), credentialOf()];
  const tokens = [web.token, jobs.token];

  test('are at most maxWaiting; the next one is answered 503 at once, and one that leaves makes room', async () => {
    const { send, wait, waiting } = await crowded({ tokens, maxWaiting: 2, maxWaitingPerToken: 2 });
    const [first, second] = [wait(web), wait(web)];
    await waiting(2);
    const refused = await wait(jobs).answer;
    expect([refused.status, await refused.json()]).toMatchObject([
      503,
      {
        type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
        code: 'server.busy',
        detail: expect.stringContaining('2 calls wait'),
      },
    ]);
    expect((await send('POST /v1/acquire', { as: jobs, body: ASK })).status).toBe(429);
    expect((await wait(jobs, 0).answer).status).toBe(429);
    await first.leave();
    const third = wait(jobs);
    await waiting(2);
    await Promise.all([second.leave(), third.leave()]);
    await waiting(0);
  });

  test('are at most maxWaitingPerToken of one token', async () => {
    const { wait, waiting } = await crowded({ tokens, maxWaiting: 2 });
    const first = wait(web);
    await waiting(1);
    expect((await wait(web).answer).status).toBe(503);
    const other = wait(jobs);
    await waiting(2);
    await Promise.all([first.leave(), other.leave()]);
  });

  test('are counted for each ask of a batch', async () => {
    const { send, waiting, wait } = await crowded({ tokens, maxWaiting: 3, maxWaitingPerToken: 3 });
    const leaving = new AbortController();
    const asks = Array.from({ length: 3 }, () => ({ ...ASK, wait: { timeoutMs: 60_000 } }));
    const batch = send('POST /v1/acquire/batch', { as: web, body: { asks }, signal: leaving.signal });
    await waiting(3);
    expect((await wait(jobs).answer).status).toBe(503);
    leaving.abort();
    await batch.catch(() => {});
    await waiting(0);
  });

  test('may not ask for a longer wait than maxWaitMs, which is less than the 300 s of fetch in Node', async () => {
    for (const [options, longest] of [
      [{ tokens }, 290_000],
      [{ tokens, maxWaitMs: 1_000 }, 1_000],
    ] as const) {
      const { wait } = await crowded(options);
      const response = await wait(web, longest + 1).answer;
      expect([response.status, await response.json()]).toMatchObject([
        400,
        { field: 'wait.timeoutMs', expected: expect.stringContaining(String(longest)) },
      ]);
    }
  });

  test.each(['maxWaiting', 'maxWaitingPerToken', 'maxWaitMs'])(
    'a server does not start with a wrong %s',
    async (name) => {
      await expect(requestServer({ [name]: -1 })).rejects.toThrow(name);
    },
  );
});
