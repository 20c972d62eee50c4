import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memory } from '../../src/backends/embedded/memory.js';
import { Limit } from '../../src/core/limit.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { EventHub, readDashboard, type RunningServer, serve } from '../../src/server/index.js';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';

describe.skipIf(CHROMIUM.missing)(`the dashboard of a server that is stopped and started again${CHROMIUM.note}`, () => {
  const hub = new EventHub();
  let limiter: RateLimiter;
  let browser: Browser;
  let server: RunningServer;

  const start = (port: number): Promise<RunningServer> =>
    serve(limiter, { port, events: hub, dashboard: readDashboard() });
  const deny = (): Promise<unknown> => limiter.tryAcquire({ entityId: 'acme', resource: 'gpt-4', consume: { rpm: 2 } });

  beforeAll(async () => {
    [limiter, browser] = await Promise.all([
      RateLimiter.open(memory(), {
        limits: [Limit.perMinute('rpm', 1)],
        leaseSecrets: ['a-secret-of-tests-that-is-long-enough'],
        onEvent: hub.onEvent,
      }),
      launchBrowser(),
    ]);
    server = await start(0);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    await limiter?.close();
  });

  test('the page shows no rate from the moment at which the server ends, and goes on when it is back', async () => {
    const { page } = await openPage(browser, `${server.url}/dashboard/`);
    const rate = page.locator('.stat', { hasText: 'Denied / s' }).locator('dd').first();
    const refused = page.getByRole('region', { name: 'Refused now' });
    await page.getByText('live', { exact: true }).waitFor();
    await deny();
    await expect.poll(() => rate.innerText()).toMatch(/^(?:0\.[1-9]|[1-9])/);
    await server.close();
    await page.getByText('not connected', { exact: true }).first().waitFor();
    expect(await rate.innerText()).toBe('–');
    // What was seen before stays.
    expect(await refused.getByRole('link', { name: 'acme' }).count()).toBe(1);
    server = await start(Number(new URL(server.url).port));
    await page.getByText('live', { exact: true }).waitFor();
    await limiter.tryAcquire({ entityId: 'later', resource: 'gpt-4', consume: { rpm: 2 } });
    await refused.getByRole('link', { name: 'later' }).waitFor();
    await expect.poll(() => page.getByRole('alert').count()).toBe(0);
    await page.reload();
    await page.getByText('live', { exact: true }).waitFor();
  });
});
