import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';

/** More visits than the engine needs to keep data about the constructor of the chart. */
const VISITS = 20;

const COUNT_NODES = `(() => {
  const walk = document.createTreeWalker(document);
  let nodes = 1;
  while (walk.nextNode()) nodes += 1;
  return nodes;
})()`;

describe.skipIf(CHROMIUM.missing)(`the memory of the dashboard${CHROMIUM.note}`, () => {
  let served: Served;
  let browser: Browser;

  beforeAll(async () => {
    [served, browser] = await Promise.all([startServed(), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await served?.[Symbol.asyncDispose]();
  });

  test('an overview that was left is freed: after 20 visits the process has few nodes besides those in the document', async () => {
    const { page, problems } = await openPage(browser, served.dashboard);
    const debug = await page.context().newCDPSession(page);
    await debug.send('Performance.enable');
    for (let visit = 0; visit < VISITS; visit++) {
      await page.getByRole('link', { name: 'Audit' }).click();
      await page.getByRole('heading', { level: 1, name: 'Audit' }).waitFor();
      await page.getByRole('link', { name: 'Overview' }).click();
      await page.getByText('No lease is held.').waitFor();
      await page.locator('canvas').waitFor();
    }
    // The nodes of a page are freed by the collection after the one that frees their JavaScript objects.
    for (let pass = 0; pass < 3; pass++) await debug.send('HeapProfiler.collectGarbage');
    const { metrics } = await debug.send('Performance.getMetrics');
    const all = metrics.find(({ name }) => name === 'Nodes')?.value ?? 0;
    const inDocument = Number(await page.evaluate(COUNT_NODES));
    // An overview without figures has more than 150 nodes; the kept part of one chart has about 10.
    expect(inDocument).toBeGreaterThan(150);
    expect(all - inDocument).toBeLessThan(60);
    expect(problems).toEqual([]);
  });
});
