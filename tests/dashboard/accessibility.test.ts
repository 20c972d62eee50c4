import axe from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { credentialOf } from '../support/server/request-server.js';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';
import { prepareEntities } from '../support/dashboard/traffic.js';

/** Evaluated in the page, through the debugger: its policy forbids inline scripts. */
const RUN_AXE = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations
  .filter(({ impact }) => impact === 'serious' || impact === 'critical')
  .map(({ id, nodes }) => id + ': ' + nodes.map(({ html, any }) => html + ' ' + any.map(({ message }) => message)).join(' | ')))`;

/** Each page with data on it, and the text that says that the data has arrived. */
const PAGES = [
  ['', 'Slots in use'],
  ['entity', 'Entities with a record'],
  ['entity?id=acme/batch&resource=gpt-4', 'slots:2/concurrent'],
  ['usage?resource=gpt-4&window=hourly', 'Save as CSV'],
  ['leases', 'Release'],
  ['limits?entity=acme/batch&resource=gpt-4', 'slots:2/concurrent'],
  ['audit', 'config.set'],
  ['try?entity=acme/batch&resource=gpt-4&consume=rpm=1', 'Dry run'],
] as const;

const app = credentialOf({ role: 'app' });

describe.skipIf(CHROMIUM.missing)(`the accessibility of the dashboard${CHROMIUM.note}`, () => {
  let served: Served;
  let locked: Served;
  let browser: Browser;

  beforeAll(async () => {
    [served, locked, browser] = await Promise.all([startServed(), startServed([app.token]), launchBrowser()]);
    await prepareEntities(served.limiter);
    const ask = {
      entityId: 'acme/batch',
      resource: 'gpt-4',
      consume: { rpm: 1, tpm: 20_000, slots: 1 },
      leaseTtlMs: 3_600_000,
    };
    for (let call = 0; call < 2; call++) {
      await fetch(`${served.url}/v1/acquire`, { method: 'POST', body: JSON.stringify(ask) });
    }
    const paused = { entityId: 'acme/batch', resource: 'gpt-4', forMs: 600_000, reason: 'a report' };
    await fetch(`${served.url}/v1/pause`, { method: 'POST', body: JSON.stringify(paused) });
    await served.countUsage();
    await prepareEntities(locked.limiter);
    await locked.limiter.pause({ entityId: 'web', resource: 'gpt-4', forMs: 3_600_000, reason: 'a report' });
  });
  afterAll(async () => {
    await browser?.close();
    await locked?.[Symbol.asyncDispose]();
    await served?.[Symbol.asyncDispose]();
  });

  /** An overview has data only of events after it was opened: a denial, a pause, and a change. */
  const fillOverview = async (page: Page): Promise<void> => {
    await page.getByText('live', { exact: true }).waitFor();
    const ask = { entityId: 'acme/batch', resource: 'gpt-4', consume: { rpm: 1 } };
    await fetch(`${served.url}/v1/acquire`, { method: 'POST', body: JSON.stringify(ask) });
    await page.getByRole('region', { name: 'Refused now' }).getByRole('link', { name: 'acme/batch' }).waitFor();
    await page.getByRole('region', { name: 'Paused' }).getByText('a report').waitFor();
  };

  describe.each(['light', 'dark'] as const)('in the %s theme', (colorScheme) => {
    test.each(PAGES)('axe finds nothing serious or critical on /%s', async (path, text) => {
      const { page, problems } = await openPage(browser, `${served.dashboard}${path}`, { colorScheme });
      await page.getByText(text).first().waitFor();
      if (path === '') await fillOverview(page);
      if (path.startsWith('try')) {
        await page.getByRole('button', { name: 'Dry run' }).click();
        await page.getByText('Would be denied (paused)').waitFor();
      }
      if (path.startsWith('limits')) {
        await page.getByRole('button', { name: 'Edit the level resource' }).click();
        await page.getByLabel('Limits, one a line').fill('rpm:1/min');
        await page.getByText('Buckets that it reaches:').waitFor();
        await page
          .getByLabel('Content as YAML or JSON')
          .fill('namespace: default\nresources: { r: { limits: [rpm:1/min] } }');
        await page.getByRole('button', { name: 'Plan', exact: true }).click();
        await page.getByText('1 change. Nothing was written yet.').waitFor();
      }
      await page.evaluate(axe.source);
      expect(await page.evaluate(RUN_AXE)).toEqual([]);
      expect(problems).toEqual([]);
      await page.context().close();
    });

    test.each(['held', 'failed'])('axe finds nothing serious or critical while the children are %s', async (how) => {
      const { page } = await openPage(browser, 'about:blank', { colorScheme });
      const body = JSON.stringify({ status: 503, code: 'backend.unavailable', detail: 'The store does not answer' });
      const fail = { status: 503, contentType: 'application/problem+json', body };
      await page.route(
        ({ searchParams }) => searchParams.has('parentId'),
        (route) => (how === 'failed' ? route.fulfill(fail) : undefined),
      );
      await page.goto(`${served.dashboard}entity?id=acme&resource=gpt-4`);
      const panel = page.getByRole('region', { name: 'acme', exact: true });
      await panel.getByText(how === 'failed' ? 'The store does not answer' : 'Reading').waitFor();
      await page.evaluate(axe.source);
      expect(await page.evaluate(RUN_AXE)).toEqual([]);
      await page.context().close();
    });

    test('axe finds nothing serious or critical on the sign-in, and on the page of an entity for a token of the role app', async () => {
      const { page } = await openPage(browser, `${locked.dashboard}entity?id=web&resource=gpt-4`, { colorScheme });
      await page.getByRole('button', { name: 'Sign in' }).waitFor();
      await page.evaluate(axe.source);
      expect(await page.evaluate(RUN_AXE)).toEqual([]);
      await page.getByLabel('Token').fill(app.secret);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.getByText(/^web on gpt-4 is paused/).waitFor();
      await page.getByRole('meter', { name: 'slots' }).waitFor();
      await page.evaluate(axe.source);
      expect(await page.evaluate(RUN_AXE)).toEqual([]);
      await page.context().close();
    });
  });

  test.each([360, 1600])('no page is wider than a screen of %d pixels', async (width) => {
    for (const [path, text] of PAGES) {
      const { page } = await openPage(browser, `${served.dashboard}${path}`, { viewport: { width, height: 800 } });
      await page.getByText(text).first().waitFor();
      expect([path, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([path, width]);
      await page.context().close();
    }
  });

  test('the keyboard alone reaches a page by the skip link and the links, and the focus moves to its heading', async () => {
    const { page } = await openPage(browser, served.dashboard);
    await page.getByText('Slots in use').waitFor();
    await page.keyboard.press('Tab');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Skip to content');
    for (const name of ['Headgate', 'Overview', 'Entity']) {
      await page.keyboard.press('Tab');
      expect(await page.evaluate('document.activeElement.textContent')).toBe(name);
    }
    await page.keyboard.press('Enter');
    await page.getByText('Entities with a record').waitFor();
    expect(await page.evaluate('document.activeElement.tagName + document.activeElement.textContent')).toBe('H1Entity');
    expect(await page.title()).toBe('Entity · Headgate');
    await page.getByRole('link', { name: 'acme/web' }).click();
    await expect.poll(() => page.title()).toBe('acme/web · Entity · Headgate');
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H1');
  });
});
