import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Limit, memory, RateLimiter } from '../../../src/index.js';
import type { AppServer } from '../../support/http/app-server.js';
import { type Framework, frameworks, type Route, type SharedOptions } from '../../support/http/frameworks.js';

type Field = (name: string) => string | undefined;
/** What a function of the options returns, at once or as a promise. */
type Made = <T>(value: T) => T | Promise<T>;

const atOnce: Made = (value) => value;
const later: Made = async (value) => {
  await new Promise((resolve) => setImmediate(resolve));
  return value;
};

const PLANS: Readonly<Record<string, readonly Limit[]>> = {
  free: [Limit.perDay('requests', 3)],
  paid: [Limit.perDay('requests', 30), Limit.perHour('burst', 20)],
};

describe.each(frameworks.map((framework) => [framework.name, framework] as const))('%s', (_, framework: Framework) => {
  let limiter: RateLimiter;
  let route: Route;
  const servers: AppServer[] = [];

  const start = async (options: Omit<SharedOptions, 'limiter'>): Promise<string> => {
    const server = await framework.start([{ limiter, ...options }], () => route, 0);
    servers.push(server);
    return server.url;
  };
  /** The status of a request, and what is left of each limit. */
  const ask = async (url: string, headers: Record<string, string> = {}): Promise<string> => {
    const response = await fetch(url, { headers });
    await response.text();
    const left = Array.from(response.headers.get('ratelimit')?.matchAll(/"(\w+)";r=(\d+)/g) ?? []);
    return [response.status, ...left.map(([, name, rest]) => `${name} ${rest}`)].join(', ');
  };
  const consumedIn = async (entityId: string): Promise<number> => {
    const [bucket] = (await limiter.buckets.list({ entityId })).items;
    return bucket?.limits[0]?.consumed ?? 0;
  };

  beforeEach(() => {
    limiter = new RateLimiter(memory());
    route = {};
  });
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
    await limiter.close();
  });

  describe.each([
    ['at once', atOnce],
    ['later', later],
  ])('functions that answer %s', (_when, made) => {
    test('the key decides whose limits apply, and the limits may depend on the plan of the client', async () => {
      const url = await start({
        key: (field: Field) => made(field('x-user') ?? 'nobody'),
        limits: (field: Field) => made(PLANS[field('x-plan') ?? 'free'] ?? []),
      });
      expect(await ask(url, { 'x-user': 'ada' })).toBe('200, requests 2');
      expect(await ask(url, { 'x-user': 'ada' })).toBe('200, requests 1');
      expect(await ask(url, { 'x-user': 'bob' })).toBe('200, requests 2');
      expect(await ask(url, { 'x-user': 'ada', 'x-plan': 'paid' })).toBe('200, requests 29, burst 19');
    });

    test('the cost may be a number for all limits, or amounts by limit', async () => {
      const url = await start({
        key: () => made('client'),
        limits: PLANS['paid']!,
        cost: (field: Field) => made(field('x-cost') === 'amounts' ? { requests: 5, burst: 2 } : 3),
      });
      expect(await ask(url)).toBe('200, requests 27, burst 17');
      expect(await ask(url, { 'x-cost': 'amounts' })).toBe('200, requests 22, burst 15');
    });

    test('the resource separates the buckets of a client, and a request that is skipped takes from none', async () => {
      const url = await start({
        key: () => made('client'),
        limits: PLANS['free']!,
        resource: (field: Field) => made(field('x-part') ?? 'http'),
        skip: (field: Field) => made(field('x-part') === 'health'),
      });
      expect(await ask(url, { 'x-part': 'search' })).toBe('200, requests 2');
      expect(await ask(url, { 'x-part': 'upload' })).toBe('200, requests 2');
      expect(await ask(url, { 'x-part': 'search' })).toBe('200, requests 1');
      expect(await ask(url, { 'x-part': 'health' })).toBe('200');
      const { items } = await limiter.buckets.list({ entityId: 'client' });
      expect(items.map(({ resource }) => resource.replace(/~.*/, '')).toSorted()).toEqual(['search', 'upload']);
    });
  });

  test('a cost of amounts is taken from configured limits too', async () => {
    await limiter.config.setResource('http', { limits: [Limit.perDay('requests', 9), Limit.perDay('units', 90)] });
    const url = await start({ key: () => 'client', cost: { units: 40 } });
    expect([await ask(url), await ask(url), await ask(url)]).toEqual([
      '200, units 50',
      '200, units 10',
      '429, units 10',
    ]);
  });

  test('an answer is a success if isSuccessful says so, whatever its status', async () => {
    const limits = [Limit.perDay('requests', 9)];
    const isSuccessful = (status: number): boolean => status === 404;
    const urls = {
      failed: await start({ key: () => 'failed', limits, isSuccessful, skipFailedRequests: true }),
      successful: await start({ key: () => 'successful', limits, isSuccessful, skipSuccessfulRequests: true }),
    };
    for (const status of [200, 404, 404, 500]) {
      route = { status };
      await ask(urls.failed);
      await ask(urls.successful);
    }
    await vi.waitFor(async () => expect([await consumedIn('failed'), await consumedIn('successful')]).toEqual([2, 2]));
  });

  test('a request is refused at once where as many wait as may wait', async () => {
    await limiter.config.setResource('http', { limits: [Limit.concurrent('slots', 1, { cost: 1 })] });
    const url = await start({ key: () => 'client', wait: { timeoutMs: 60_000, maxWaiting: 1 } });
    let answerNow = (): void => {};
    const reached = vi.fn<() => void>();
    route = { reached, until: new Promise<void>((resolve) => (answerNow = resolve)) };
    const first = fetch(url);
    await vi.waitFor(() => expect(reached).toHaveBeenCalledTimes(1));
    const second = fetch(url);
    await vi.waitFor(() => expect(limiter.waiting()).toHaveLength(1));
    expect((await fetch(url)).status).toBe(429);
    answerNow();
    expect([(await first).status, (await second).status]).toEqual([200, 200]);
  });
});
