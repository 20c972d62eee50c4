import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';
import { prepareEntities } from '../support/dashboard/traffic.js';

describe.skipIf(CHROMIUM.missing)(`the connection of the dashboard to the events of the server${CHROMIUM.note}`, () => {
  let served: Served;
  let browser: Browser;

  beforeAll(async () => {
    [served, browser] = await Promise.all([startServed(), launchBrowser()]);
    await prepareEntities(served.limiter);
  });
  afterAll(async () => {
    await browser?.close();
    await served?.[Symbol.asyncDispose]();
  });

  const deny = async (): Promise<void> => {
    const body = JSON.stringify({ entityId: 'acme/web', resource: 'gpt-4', consume: { tpm: 90_001 } });
    await fetch(`${served.url}/v1/acquire`, { method: 'POST', body });
  };

  test('a lost stream is shown as not connected, pages of the store go on by polling, and the page connects again', async () => {
    const { page } = await openPage(browser, 'about:blank');
    let isDown = true;
    await page.route('**/v1/events*', (route) => (isDown ? route.abort('connectionreset') : route.continue()));
    await page.goto(`${served.dashboard}entity?id=acme/web&resource=gpt-4`);
    await page.getByText('not connected', { exact: true }).waitFor();
    const body = JSON.stringify({ entityId: 'acme/web', resource: 'gpt-4', consume: { rpm: 5 } });
    await fetch(`${served.url}/v1/acquire`, { method: 'POST', body });
    await page.getByRole('meter', { name: 'rpm' }).first().waitFor();
    isDown = false;
    await page.getByText('live', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await deny();
    await page.getByRole('region', { name: 'Refused now' }).getByRole('link', { name: 'acme/web' }).waitFor();
  });

  test.each([401, 403])('after a %i the page says that it does not try again, and it does not', async (status) => {
    const { page } = await openPage(browser, 'about:blank');
    let asked = 0;
    await page.route('**/v1/events*', (route) => {
      asked += 1;
      const problem = { status, code: 'token.missing', detail: 'The token is not known' };
      return route.fulfill({ status, contentType: 'application/problem+json', body: JSON.stringify(problem) });
    });
    await page.goto(served.dashboard);
    const notice = page.locator('p.notice', { hasText: 'Not connected' });
    await notice.getByText('Load the page to try again.').waitFor();
    expect(await notice.innerText()).not.toContain('Trying again');
    expect(asked).toBe(1);
  });

  test('an overview that has lost its server shows no rate, keeps its lists, and shows rates again after the server is back', async () => {
    const { page } = await openPage(browser, served.dashboard);
    const rate = page.locator('.stat', { hasText: 'Denied / s' }).locator('dd').first();
    await page.getByText('live', { exact: true }).waitFor();
    await deny();
    await page.getByRole('region', { name: 'Refused now' }).getByRole('link', { name: 'acme/web' }).waitFor();
    await page.context().setOffline(true);
    // The network of the browser is off for new requests only. This cuts the stream too.
    await page.evaluate('window.stop()');
    await page.getByText('not connected', { exact: true }).first().waitFor();
    await expect.poll(() => rate.innerText()).toBe('–');
    await page.getByRole('img', { name: 'The decisions of the last second are not known' }).waitFor();
    expect(await page.getByRole('region', { name: 'Refused now' }).getByRole('link').count()).toBeGreaterThan(0);
    await page.getByRole('region', { name: 'Slots in use' }).getByRole('alert').waitFor();
    await page.context().setOffline(false);
    await page.getByText('live', { exact: true }).waitFor();
    await expect.poll(() => rate.innerText()).toMatch(/^[\d.]+$/);
    await expect.poll(() => page.getByRole('alert').count()).toBe(0);
  });

  test('pauses that still run are listed again after a lost connection, and those that were resumed meanwhile are not', async () => {
    const { page } = await openPage(browser, served.dashboard);
    await page.getByText('live', { exact: true }).waitFor();
    const { limiter } = served;
    const pauses = page.getByRole('region', { name: 'Paused' });
    const send = (path: string, body: object) =>
      fetch(`${served.url}${path}`, { method: 'POST', body: JSON.stringify(body) });
    await send('/v1/pause', { entityId: 'acme/web', reason: 'of the entity' });
    await send('/v1/pause', { entityId: 'acme/web', resource: 'gpt-4', reason: 'of the bucket' });
    await send('/v1/pause', { entityId: 'acme', reason: 'of the parent' });
    for (const text of ['of the entity', 'of the bucket', 'of the parent']) await pauses.getByText(text).waitFor();
    await page.context().setOffline(true);
    await page.evaluate('window.stop()');
    await page.getByText('not connected', { exact: true }).first().waitFor();
    await limiter.resume({ entityId: 'acme' });
    await page.context().setOffline(false);
    await page.getByText('live', { exact: true }).waitFor();
    await expect.poll(() => pauses.getByRole('listitem').count()).toBe(2);
    expect(await pauses.innerText()).not.toContain('of the parent');
    await limiter.resume({ entityId: 'acme/web' });
    await limiter.resume({ entityId: 'acme/web', resource: 'gpt-4' });
  });

  test('a pause that cannot be read after a lost connection stays, marked, until it was read', async () => {
    const { page } = await openPage(browser, served.dashboard);
    await page.getByText('live', { exact: true }).waitFor();
    const pauses = page.getByRole('region', { name: 'Paused' });
    const body = JSON.stringify({ entityId: 'acme/batch', reason: 'report 5' });
    await fetch(`${served.url}/v1/pause`, { method: 'POST', body });
    await pauses.getByText('report 5').waitFor();
    let isOut = true;
    await page.route('**/v1/entities?id=*', (route) =>
      isOut ? route.fulfill({ status: 503, json: {} }) : route.continue(),
    );
    await page.context().setOffline(true);
    await page.evaluate('window.stop()');
    await page.getByText('not connected', { exact: true }).first().waitFor();
    await page.context().setOffline(false);
    const mark = pauses.getByText('not checked since the connection was lost');
    await mark.waitFor();
    await pauses.getByText('report 5').waitFor();
    isOut = false;
    await mark.waitFor({ state: 'detached' });
    await pauses.getByText('report 5').waitFor();
    await served.limiter.resume({ entityId: 'acme/batch' });
  });

  test('a page that is opened in the background has its data, reads nothing more while it is hidden, and reads when it is looked at', async () => {
    const { page } = await openPage(browser, 'about:blank');
    await page.addInitScript(`window.shown = 'hidden';
      Object.defineProperty(document, 'visibilityState', { get: () => window.shown, configurable: true });`);
    await page.clock.install();
    let reads = 0;
    page.on('request', (request) => {
      if (request.url().includes('/v1/status')) reads += 1;
    });
    await page.goto(`${served.dashboard}entity?id=acme/web&resource=gpt-4`);
    await page.getByRole('meter', { name: 'rpm' }).first().waitFor();
    await page.clock.runFor(10_000);
    expect(reads).toBe(1);
    await page.evaluate(`window.shown = 'visible'; document.dispatchEvent(new Event('visibilitychange'))`);
    await expect.poll(() => reads).toBe(2);
  });

  test('a browser whose clock is 3 hours ahead counts the leases that are held', async () => {
    const { page } = await openPage(browser, 'about:blank');
    await page.addInitScript('{ const now = Date.now; Date.now = () => now() + 3 * 3_600_000; }');
    const lease = await served.limiter.acquire({
      entityId: 'acme/web',
      resource: 'gpt-4',
      consume: { rpm: 1 },
      leaseTtlMs: 600_000,
    });
    await page.goto(served.dashboard);
    await page.getByRole('region', { name: 'Slots in use' }).getByText('Leases held').waitFor();
    await lease.commit();
  });

  test('behind a proxy that holds the stream back, the overview shows denials by polling', async () => {
    const { page, problems } = await openPage(browser, 'about:blank');
    // Never answered, as by a proxy that buffers until the answer ends.
    await page.route(
      (url) => url.pathname === '/v1/events' && !url.searchParams.has('forMs'),
      () => {},
    );
    await page.goto(served.dashboard);
    await page.getByText('live, by polling').waitFor();
    const refused = page.getByRole('region', { name: 'Refused now' }).getByRole('link', { name: 'acme/web' });
    await expect
      .poll(async () => {
        await deny();
        return refused.count();
      })
      .toBeGreaterThan(0);
    expect(problems).toEqual([]);
  });

  test('a page that cannot reach the server says so, keeps what it has, and reads again on request', async () => {
    const { page } = await openPage(browser, 'about:blank');
    let isDown = true;
    await page.route('**/v1/audit*', (route) => (isDown ? route.abort('connectionrefused') : route.continue()));
    await page.goto(`${served.dashboard}audit`);
    await page.getByRole('alert').getByText('The server does not answer').waitFor();
    isDown = false;
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('config.set').first().waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
  });
});
