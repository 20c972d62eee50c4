import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';
import { prepareEntities, startTraffic } from '../support/dashboard/traffic.js';

describe.skipIf(CHROMIUM.missing)(`the dashboard of headgate serve on dynoxide${CHROMIUM.note}`, () => {
  let served: Served;
  let browser: Browser;

  beforeAll(async () => {
    served = await startServed();
    browser = await launchBrowser();
    await prepareEntities(served.limiter);
  });
  afterAll(async () => {
    await browser?.close();
    await served?.[Symbol.asyncDispose]();
  });

  const post = async (path: string, body: object): Promise<Response> =>
    fetch(`${served.url}${path}`, { method: 'POST', body: JSON.stringify(body) });
  const acquire = async (entityId: string, resource: string, consume: object, rest: object = {}): Promise<Response> =>
    post('/v1/acquire', { entityId, resource, consume, ...rest });
  const used = async (page: Page, limit: string): Promise<string> =>
    (await page.getByRole('meter', { name: limit, exact: true }).first().getAttribute('aria-valuetext')) ?? '';

  test('the overview counts the decisions of real traffic, and names who is refused by which limit', async () => {
    const { page, problems } = await openPage(browser, served.dashboard);
    await page.getByText('live', { exact: true }).waitFor();
    const traffic = startTraffic(served.url);
    const refused = page.getByRole('table', { name: /refused in the last minute/ });
    await refused.getByRole('row', { name: /acme\/batch.*gpt-4.*slots/ }).waitFor();
    await page.getByRole('region', { name: 'Top allowed' }).getByRole('link', { name: 'acme/web' }).waitFor();
    await page.getByRole('region', { name: 'Slots in use' }).getByText('2 of 2').waitFor();
    await traffic.stop();
    expect(problems).toEqual([]);
  });

  test('the gauge of a limit moves when the entity spends', async () => {
    await acquire('gauge', 'gpt-4', { tpm: 1 });
    const { page, problems } = await openPage(browser, `${served.dashboard}entity?id=gauge&resource=gpt-4`);
    await page.getByRole('meter', { name: 'tpm' }).waitFor();
    await acquire('gauge', 'gpt-4', { tpm: 60_000 });
    await expect.poll(() => used(page, 'tpm')).toMatch(/^5\d,\d{3} of 90,000 used, full again in/);
    await post('/v1/charge', { entityId: 'gauge', resource: 'gpt-4', amounts: { tpm: 80_000 } });
    await expect.poll(() => used(page, 'tpm')).toMatch(/90,000 of 90,000 used, [\d,]+ in debt/);
    expect(await page.getByText('batch leaves 27,000').count()).toBe(1);
    expect(problems).toEqual([]);
  });

  test('a release of a lease gives its slot to a caller that waits, and the overview shows the waiting caller', async () => {
    await served.limiter.config.setEntity('held', 'gpu', { limits: [Limit.concurrent('slots', 1)] });
    expect((await acquire('held', 'gpu', { slots: 1 })).status).toBe(200);
    const waiting = acquire('held', 'gpu', { slots: 1 }, { wait: { timeoutMs: 50_000 } });
    const { page, problems } = await openPage(browser, served.dashboard);
    const lines = page.getByRole('table', { name: 'Calls that wait, by limit' });
    await lines.getByRole('row', { name: /held.*slots.*1/ }).waitFor();
    await page.goto(`${served.dashboard}leases?entity=held`);
    await page.getByRole('button', { name: /^Release: lease/ }).click();
    await page.getByRole('button', { name: /^Release now: lease/ }).click();
    await page.getByText(/^The lease \S+ of held was released/).waitFor();
    expect(await (await waiting).json()).toMatchObject({ granted: true });
    expect(problems).toEqual([]);
  });

  test('the page Try explains a grant and a denial level by level', async () => {
    const { page, problems } = await openPage(browser, `${served.dashboard}try`);
    await page.getByLabel('Entity').fill('acme/mobile');
    await page.getByLabel('Resource').fill('gpt-4');
    await page.getByLabel('Consume').fill('rpm=1 tpm=70000');
    await page.getByRole('button', { name: 'Acquire' }).click();
    await page.getByText('Granted.').waitFor();
    await page.getByRole('button', { name: 'Acquire' }).click();
    await page.getByText(/^Denied \(exhausted\)\. It fits in/).waitFor();
    const own = page.getByRole('table', { name: 'Limits of acme/mobile' });
    expect(await own.getByRole('row', { name: /✗ refused/ }).innerText()).toMatch(
      /tpm:90000.*70,000.*too many, fits in/s,
    );
    const parent = page.getByRole('table', { name: 'Limits of acme', exact: true });
    expect(await parent.getByRole('row', { name: /✓ fits/ }).count()).toBe(2);
    expect(new URL(page.url()).searchParams.get('consume')).toBe('rpm=1 tpm=70000');
    expect(problems).toEqual([]);
  });
});
