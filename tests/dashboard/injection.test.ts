import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';

/** Runs if it reaches the page as markup. */
const MARKUP = `<img src=x onerror="window.injected=1"><script>window.injected=2</script>`;
const ID = 'a<svg/onload=injected=3>';

describe.skipIf(CHROMIUM.missing)(`markup in names and values on the dashboard${CHROMIUM.note}`, () => {
  let served: Served;
  let browser: Browser;

  beforeAll(async () => {
    [served, browser] = await Promise.all([startServed(), launchBrowser()]);
    const { limiter, url } = served;
    await limiter.entities.create({ id: ID, name: MARKUP, metadata: { [MARKUP]: MARKUP } });
    await limiter.config.setEntityDefault(ID, { limits: [Limit.perMinute('rpm', 1)] });
    const post = async (path: string, body: object): Promise<Response> =>
      fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) });
    await post('/v1/acquire', { entityId: ID, resource: 'r', consume: { rpm: 1 } });
    await post('/v1/pause', { entityId: ID, forMs: 600_000, reason: MARKUP });
    await served.countUsage();
  });
  afterAll(async () => {
    await browser?.close();
    await served?.[Symbol.asyncDispose]();
  });

  test.each([
    ['the name of an entity in a list', 'entity?search=svg', MARKUP],
    ['the id, the metadata and the reason of a pause', `entity?id=${encodeURIComponent(ID)}`, MARKUP],
    ['the values of the audit', 'audit', MARKUP],
    ['the id of an entity in the usage', 'usage?resource=r&window=hourly', ID],
    ['the reason of a pause on the page Limits', `limits?entity=${encodeURIComponent(ID)}`, MARKUP],
    ['the search in the address', `entity?search=${encodeURIComponent(MARKUP)}`, MARKUP],
  ])('%s shows as text', async (_what, path, text) => {
    const { page, problems } = await openPage(browser, `${served.dashboard}${path}`);
    await page.getByText(text).first().waitFor();
    expect(await page.evaluate('window.injected')).toBeUndefined();
    expect(await page.locator('main img, main script').count()).toBe(0);
    expect(problems).toEqual([]);
    await page.context().close();
  });

  test('a denial of a live event shows its entity and the reason of its pause as text', async () => {
    const { page, problems } = await openPage(browser, served.dashboard);
    await page.getByText('live', { exact: true }).waitFor();
    const body = JSON.stringify({ entityId: ID, resource: 'r', consume: { rpm: 1 } });
    await fetch(`${served.url}/v1/acquire`, { method: 'POST', body });
    await page.getByRole('region', { name: 'Paused' }).getByText(MARKUP).waitFor();
    await page.getByRole('region', { name: 'Refused now' }).getByText(ID).waitFor();
    expect(await page.evaluate('window.injected')).toBeUndefined();
    expect(problems).toEqual([]);
  });

  test('the policy of the page stops a script and a style that reach the markup by another way', async () => {
    const { page } = await openPage(browser, served.dashboard);
    const inserted = page.evaluate(
      `document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.injected=9">')`,
    );
    await expect(inserted).rejects.toThrow(/TrustedHTML/);
    const script = `const one = document.createElement('script'); one.append('window.injected=8'); document.body.append(one);`;
    await page.evaluate(script).catch(() => {});
    expect(await page.evaluate('window.injected')).toBeUndefined();
  });
});
