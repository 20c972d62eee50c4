import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';

describe.skipIf(CHROMIUM.missing)(`the page Audit of the dashboard${CHROMIUM.note}`, () => {
  let served: Served;
  let browser: Browser;

  beforeAll(async () => {
    [served, browser] = await Promise.all([startServed(), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await served?.[Symbol.asyncDispose]();
  });

  test('a change is listed with who made it, and with the value before and after', async () => {
    const { config } = served.limiter;
    await config.setResource('gpt-4', { limits: [Limit.perMinute('rpm', 60), Limit.perMinute('tpm', 9)] });
    await config.setResource('gpt-4', { limits: [Limit.perMinute('rpm', 80), Limit.perMinute('tpm', 9)] });
    const { page, problems } = await openPage(browser, `${served.dashboard}audit?of=resource&name=gpt-4`);
    const newest = page.getByRole('region', { name: 'Changes of gpt-4' }).locator('.audit > li').first();
    await newest.getByText('config.set').waitFor();
    await newest.getByText('by operator').waitFor();
    expect(await newest.locator('del').allInnerTexts()).toEqual(['rpm:60/min']);
    expect(await newest.locator('ins').allInnerTexts()).toEqual(['rpm:80/min']);
    expect(problems).toEqual([]);
  });

  test('changes are read page by page, the newest first, and each page has an address', async () => {
    for (let at = 0; at < 130; at++) await served.limiter.entities.create({ id: `made-${at}` });
    const { page, problems } = await openPage(browser, `${served.dashboard}audit`);
    const entries = page.locator('.audit > li');
    await expect.poll(() => entries.count()).toBe(100);
    expect(await entries.first().innerText()).toContain('made-129');
    await page.getByRole('link', { name: 'Older changes' }).click();
    await expect.poll(() => entries.first().innerText()).toContain('made-29');
    expect(await entries.last().innerText()).toContain('gpt-4');
    expect(await page.getByRole('link', { name: 'Older changes' }).count()).toBe(0);
    await page.reload();
    await expect.poll(() => entries.first().innerText()).toContain('made-29');
    await page.getByRole('link', { name: 'Newest changes' }).click();
    await expect.poll(() => entries.first().innerText()).toContain('made-129');
    expect(problems).toEqual([]);
  });
});
