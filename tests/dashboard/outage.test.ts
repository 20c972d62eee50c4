import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';

describe.skipIf(CHROMIUM.missing)(`the dashboard in an outage of the store${CHROMIUM.note}`, () => {
  let served: Served;
  let browser: Browser;

  beforeAll(async () => {
    [served, browser] = await Promise.all([startServed(), launchBrowser()]);
    await served.limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 600)], onUnavailable: 'allow' });
    await served.limiter.namespaces.register('tenant-2');
  });
  afterAll(async () => {
    await browser?.close();
    await served?.[Symbol.asyncDispose]();
  });

  const acquire = async (): Promise<string> => {
    const body = JSON.stringify({ entityId: 'acme/web', resource: 'gpt-4', consume: { rpm: 1 } });
    const response = await fetch(`${served.url}/v1/acquire`, { method: 'POST', body });
    return ((await response.json()) as { readonly decidedBy: string }).decidedBy;
  };
  const stat = (page: Page, label: string) => page.locator('.stat', { hasText: new RegExp(`^${label}`) });

  test('an overview that is opened in an outage shows it, counts degraded decisions, and shows when it ends', async () => {
    expect(await acquire()).toBe('store');
    await served.proxy.refuse();
    await expect.poll(acquire).toBe('open');
    const { page } = await openPage(browser, served.dashboard);
    await page.getByText('live', { exact: true }).waitFor();
    await page.getByText('other namespaces could not be read').waitFor();
    await acquire();
    await stat(page, 'Store').getByText('outage', { exact: true }).waitFor();
    await expect.poll(() => stat(page, 'Degraded / s').locator('dd').first().innerText()).toMatch(/^0\.[1-9]$|^[1-9]/);
    // Figures of this server need no store; those of the store say that they could not be read.
    await page.getByRole('region', { name: 'Waiting calls' }).getByText('No call waits.').waitFor();
    const slots = page.getByRole('region', { name: 'Slots in use' });
    await slots.getByRole('alert').waitFor();
    expect(await slots.innerText()).not.toContain('No lease is held');
    await served.proxy.accept();
    await expect.poll(acquire, { timeout: 30_000 }).toBe('store');
    await stat(page, 'Store').getByText('no outage now').waitFor();
  });

  test('a page that has lost its server claims nothing about the store or about refusals', async () => {
    const { page } = await openPage(browser, served.dashboard);
    await page.getByText('live', { exact: true }).waitFor();
    await acquire();
    await stat(page, 'Store').getByText('no outage now').waitFor();
    await page.context().setOffline(true);
    await page.evaluate('window.stop()');
    await page.getByText('not connected', { exact: true }).first().waitFor();
    await expect.poll(() => stat(page, 'Store').innerText()).toMatch(/–\s+not connected/);
    const refused = page.getByRole('region', { name: 'Refused now' });
    await refused.getByText('Not known: the page is not connected.').waitFor();
  });
});
