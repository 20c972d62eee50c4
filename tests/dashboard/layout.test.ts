import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';
import { prepareEntities } from '../support/dashboard/traffic.js';

/** From a phone to a wide screen, with the widths at which the number of columns changes. */
const WIDTHS = [360, 600, 768, 895, 896, 1024, 1189, 1190, 1280, 1600];

/** How many children of each element are in each of its rows, and how far its rows end before it does. */
const rowsOf = (selector: string): string => `[...document.querySelectorAll('${selector}')].map((grid) => {
  const rows = new Map();
  for (const child of grid.children) {
    const { top, right } = child.getBoundingClientRect();
    const row = rows.get(Math.round(top)) ?? { count: 0, right: 0 };
    rows.set(Math.round(top), { count: row.count + 1, right: Math.max(row.right, right) });
  }
  const end = grid.getBoundingClientRect().right;
  return [...rows.values()].map(({ count, right }) => ({ count, gap: Math.round(end - right) }));
})`;

type Rows = readonly (readonly { readonly count: number; readonly gap: number }[])[];

describe.skipIf(CHROMIUM.missing)(`the layout of the dashboard${CHROMIUM.note}`, () => {
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

  const rowsAt = async (page: Page, width: number, selector: string): Promise<Rows> => {
    await page.setViewportSize({ width, height: 900 });
    return (await page.evaluate(rowsOf(selector))) as Rows;
  };

  test('at every width the panels of the overview fill their rows', async () => {
    const { page } = await openPage(browser, served.dashboard);
    await page.getByText('No lease is held.').waitFor();
    const open: string[] = [];
    for (const width of WIDTHS) {
      const grids = await rowsAt(page, width, '.grid.narrow');
      expect(grids).toHaveLength(2);
      for (const rows of grids) {
        if (rows.some(({ gap }) => gap > 1)) open.push(`${width}: ${JSON.stringify(rows)}`);
      }
    }
    expect(open).toEqual([]);
  });

  test('at every width the four levels are in rows of the same length', async () => {
    const { page } = await openPage(browser, `${served.dashboard}limits?entity=acme/batch&resource=gpt-4`);
    await page.getByRole('article', { name: 'system' }).waitFor();
    const uneven: string[] = [];
    for (const width of WIDTHS) {
      const [rows = []] = await rowsAt(page, width, '.level-cards');
      expect(rows.length).toBeGreaterThan(0);
      if (new Set(rows.map(({ count }) => count)).size !== 1) uneven.push(`${width}: ${JSON.stringify(rows)}`);
    }
    expect(uneven).toEqual([]);
  });

  test('a short id stays on one line beside a long reason', async () => {
    const { page } = await openPage(browser, `${served.dashboard}entity?id=acme/mobile&resource=gpt-4`, {
      viewport: { width: 1280, height: 900 },
    });
    await page.getByText('live', { exact: true }).waitFor();
    const post = (path: string, body: object): Promise<Response> =>
      fetch(`${served.url}${path}`, { method: 'POST', body: JSON.stringify(body) });
    const paused = { entityId: 'acme/mobile', forMs: 600_000, reason: 'many words that explain the pause '.repeat(4) };
    await post('/v1/pause', paused);
    await post('/v1/acquire', { entityId: 'acme/mobile', resource: 'gpt-4', consume: { rpm: 1, tpm: 300 } });
    const link = page.getByRole('table', { name: 'Denials of acme/mobile' }).getByRole('link').first();
    await link.waitFor();
    expect(await link.evaluate((node) => node.getClientRects().length)).toBe(1);
  });
});
