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
    await page.getByRole('meter', { name: 'rpm' }).waitFor();
    isDown = false;
    await page.getByText('live', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Overview' }).click();
    await deny();
    await page.getByRole('region', { name: 'Refused now' }).getByRole('link', { name: 'acme/web' }).waitFor();
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
