import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { isBuilt, type ServedSite, serveSite, sitePages } from './serve-site.js';

/** By how many pixels the page is wider than the window. */
async function excessOf(page: Page): Promise<number> {
  return Number(await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'));
}

const NOTE = isBuilt ? CHROMIUM.note : ' (skipped: run npm run docs, which builds the site)';

describe.skipIf(CHROMIUM.missing || !isBuilt)(`the site in Chromium${NOTE}`, () => {
  let site: ServedSite;
  let browser: Browser;

  beforeAll(async () => {
    [site, browser] = await Promise.all([serveSite(), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await site?.[Symbol.asyncDispose]();
  });

  test.each([360, 1440])('no page scrolls sideways or has an error at a width of %i pixels', async (width) => {
    const pages = sitePages();
    expect(pages.length).toBeGreaterThan(100);
    const { page, problems } = await openPage(browser, `${site.url}/`, { viewport: { width, height: 800 } });
    const wide: string[] = [];
    for (const path of pages) {
      await page.goto(site.url + path);
      const excess = await excessOf(page);
      if (excess > 0) wide.push(`${path}: ${excess} px`);
    }
    expect({ wide, problems }).toEqual({ wide: [], problems: [] });
    await page.context().close();
  });

  test('a page that is too wide, and an error in a page, are found', async () => {
    const { page, problems } = await openPage(browser, `${site.url}/`, { viewport: { width: 360, height: 800 } });
    await page.evaluate(`document.querySelector('main').innerHTML = '<div style="width: 500px">wide</div>'`);
    expect(await excessOf(page)).toBeGreaterThan(0);
    await page.evaluate(`void setTimeout(() => { throw new Error('planted'); })`);
    await expect.poll(() => problems).toEqual(['uncaught: planted']);
    await page.context().close();
  });

  test.each([360, 1440])('the search finds a page by a word of it at a width of %i pixels', async (width) => {
    const { page, problems } = await openPage(browser, `${site.url}/`, { viewport: { width, height: 800 } });
    await page
      .getByRole('button', { name: /search/i })
      .first()
      .click();
    await page.getByRole('searchbox').fill('await using');
    await page.getByRole('option').or(page.locator('.result')).first().click();
    await expect.poll(() => new URL(page.url()).pathname).toMatch(/\.html$/);
    // The address changes before the page does.
    await expect.poll(() => page.locator('main').innerText()).toContain('await using');
    expect(problems).toEqual([]);
    await page.context().close();
  });
});
