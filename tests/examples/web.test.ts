import { afterAll, describe, expect, test, vi } from 'vitest';
import * as expressExample from '../../examples/express.js';
import * as lambdaExample from '../../examples/lambda.js';
import * as nextExample from '../../examples/next-route.js';
import { type AppServer, serveApp } from '../support/http/app-server.js';

afterAll(async () => {
  for (const { limiter } of [expressExample, lambdaExample, nextExample]) await limiter.close();
});

describe('the example of express', () => {
  let server: AppServer | undefined;
  afterAll(() => server?.stop());

  test('reports that succeed count for their user, and every answer names both limits', async () => {
    server = await serveApp(expressExample.app);
    const report = (user: string, query = '') =>
      fetch(`${server?.url}/report${query}`, { headers: { 'x-user': user } });
    expect((await report('ada', '?broken=yes')).status).toBe(500);
    await vi.waitFor(async () =>
      expect((await report('bob', '?broken=yes')).headers.get('ratelimit')).toContain('"reports";r=4'),
    );
    const statuses: number[] = [];
    for (let at = 0; at < 6; at++) statuses.push((await report('ada')).status);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429]);
    expect((await report('eve')).headers.get('ratelimit-policy')).toBe('"requests";q=100;w=60, "reports";q=5;w=3600');
  });
});

test('the example of Next.js answers ten requests of a client and refuses the eleventh', async () => {
  const post = (address: string) =>
    nextExample.POST(
      new Request('http://app.test/api/chat', {
        method: 'POST',
        body: JSON.stringify({ text: 'hi' }),
        headers: { 'x-forwarded-for': address },
      }),
    );
  const statuses: number[] = [];
  for (let at = 0; at < 11; at++) {
    const answer = await post('203.0.113.7');
    await answer.text();
    statuses.push(answer.status);
  }
  expect(statuses).toEqual([...new Array<number>(10).fill(200), 429]);
  expect(await (await post('203.0.113.8')).json()).toEqual({ reply: 'HI' });
});

test('the example of Lambda tells clients apart by their API key', async () => {
  const event = (key: string) => ({
    headers: { 'x-api-key': key },
    requestContext: { http: { sourceIp: '203.0.113.7' } },
  });
  const results = await Promise.all(new Array(61).fill(null).map(() => lambdaExample.handler(event('key-1'))));
  expect(results.filter(({ statusCode }) => statusCode === 429)).toHaveLength(1);
  expect(await lambdaExample.handler(event('key-2'))).toMatchObject({ statusCode: 200 });
  const { items } = await lambdaExample.limiter.usage.query({ resource: 'api', window: 'hourly' });
  expect(items).toHaveLength(2);
  expect(JSON.stringify(items)).not.toContain('key-1');
});
