import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';
import { prepareEntities } from '../support/dashboard/traffic.js';

describe.skipIf(CHROMIUM.missing)(`the page Entity of the dashboard${CHROMIUM.note}`, () => {
  let served: Served;
  let browser: Browser;

  beforeAll(async () => {
    [served, browser] = await Promise.all([startServed(), launchBrowser()]);
    await prepareEntities(served.limiter);
    const { limiter } = served;
    await limiter.entities.create({ id: 'tower' });
    await limiter.entities.create({ id: 'tower/a', parentId: 'tower', cascade: true });
    await limiter.config.setEntity('tower', 'gpt-4', { limits: [Limit.perMinute('tpm', 10)] });
  });
  afterAll(async () => {
    await browser?.close();
    await served?.[Symbol.asyncDispose]();
  });

  const post = async (path: string, body: object): Promise<Response> =>
    fetch(`${served.url}${path}`, { method: 'POST', body: JSON.stringify(body) });
  const acquire = async (entityId: string, resource: string, consume: object): Promise<number> =>
    (await post('/v1/acquire', { entityId, resource, consume })).status;
  const limitsOf = (page: Page, id: string) => page.getByRole('region', { name: new RegExp(`^Limits of ${id} on `) });

  test('a refusal by the limit of a parent is explained on the page of the child: the limits of both, and which is used most', async () => {
    await acquire('tower/a', 'gpt-4', { tpm: 1 });
    const { page, problems } = await openPage(browser, served.dashboard);
    await page.getByText('live', { exact: true }).waitFor();
    expect(await acquire('tower/a', 'gpt-4', { tpm: 10 })).toBe(429);
    const refused = page.getByRole('table', { name: /refused in the last minute/ });
    await refused.getByRole('row', { name: /tower\/a gpt-4 tpm tower/ }).waitFor();
    await refused.getByRole('link', { name: 'tower/a' }).click();
    const limits = limitsOf(page, 'tower/a');
    const most = limits.locator('.gauge', { hasText: 'used most' });
    await expect.poll(() => most.innerText()).toMatch(/^tpm\s+1 of 10 used/);
    expect(await limits.getByRole('meter', { name: 'tpm' }).count()).toBe(2);
    // The denial that the reader came from was before this page was opened.
    const denials = page.getByRole('table', { name: 'Denials of tower/a' });
    await denials.getByRole('row', { name: /tower\/a gpt-4 tpm=10 tpm of tower/ }).waitFor();
    await limits.getByRole('link', { name: 'tower', exact: true }).click();
    await page
      .getByRole('table', { name: 'Denials of tower' })
      .getByRole('row', { name: /tower\/a/ })
      .waitFor();
    expect(problems).toEqual([]);
  });

  test.each([
    ['of a parent', { entityId: 'tower' }, 'tower on every resource'],
    ['of the bucket of a parent', { entityId: 'tower', resource: 'gpt-4' }, 'tower on gpt-4'],
    ['of the entity', { entityId: 'tower/a' }, 'tower/a on every resource'],
  ])('a pause %s is shown with the gauges, and a dry run is denied by it', async (_, target, name) => {
    await post('/v1/pause', { ...target, forMs: 600_000, reason: 'report 7' });
    const { page, problems } = await openPage(browser, `${served.dashboard}entity?id=tower/a&resource=gpt-4`);
    const limits = limitsOf(page, 'tower/a');
    await limits.getByText(new RegExp(`^${name} is paused until .*: report 7`)).waitFor();
    expect(await limits.getByRole('meter').first().getAttribute('aria-valuetext')).toMatch(/; paused$/);
    await page.goto(`${served.dashboard}try?entity=tower/a&resource=gpt-4&consume=rpm=1`);
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText(`Would be denied (paused). ${name} is paused: report 7.`).waitFor();
    expect(problems).toEqual([]);
    await post('/v1/resume', target);
  });

  test('after an edit of a limit the gauges show the new limit at once, also before the next call', async () => {
    await served.limiter.config.setEntity('edited', 'gpt-4', { limits: [Limit.perMinute('rpm', 100)] });
    await acquire('edited', 'gpt-4', { rpm: 40 });
    const { page, problems } = await openPage(browser, `${served.dashboard}entity?id=edited`);
    // Without a resource in the address the page shows that of the first bucket.
    const limits = limitsOf(page, 'edited');
    await limits.getByRole('meter', { name: 'rpm' }).waitFor();
    const body = JSON.stringify({ limits: ['rpm:1000/min', 'tpm:5/min'], replace: true });
    await fetch(`${served.url}/v1/config?entityId=edited&resource=gpt-4`, { method: 'PUT', body });
    await limits.getByRole('meter', { name: 'tpm' }).waitFor();
    expect(await limits.getByRole('meter', { name: 'rpm' }).getAttribute('aria-valuetext')).toMatch(/ of 1,000 used/);
    expect(problems).toEqual([]);
  });

  test('the level that the limits come from is marked, for the entity and for its parent', async () => {
    const { page, problems } = await openPage(browser, `${served.dashboard}entity?id=acme/web&resource=gpt-4`);
    const applies = limitsOf(page, 'acme/web').locator('li.applies');
    await expect.poll(() => applies.count()).toBe(2);
    const [own, parent] = (await applies.allInnerTexts()).map((text) => text.split(/\s+/).join(' '));
    expect(own).toMatch(/^resource .*rpm:600\/min.* applies$/);
    expect(parent).toMatch(/^entity and resource .*tpm:400000\/min.* applies$/);
    expect(problems).toEqual([]);
  });

  test('the bucket of the chosen resource is listed first, also if it is not among the first 20', async () => {
    for (let at = 10; at < 35; at++) await acquire('many', `r${at}`, { rpm: 1 });
    const { page, problems } = await openPage(browser, `${served.dashboard}entity?id=many&resource=r34`);
    const rows = page.getByRole('table', { name: 'Buckets' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(22);
    const link = rows.nth(1).getByRole('link');
    expect([await link.innerText(), await link.getAttribute('aria-current')]).toEqual(['r34', 'page']);
    expect(problems).toEqual([]);
  });

  test('the bucket of limits that a call has named links to the resource of the call', async () => {
    const limits = [Limit.perMinute('rpm', 3)];
    await served.limiter.acquire({ entityId: 'own', resource: 'gpt-4', consume: { rpm: 1 }, limits });
    const { page, problems } = await openPage(browser, `${served.dashboard}entity?id=own`);
    await page.getByRole('link', { name: 'gpt-4, limits of its calls' }).click();
    await limitsOf(page, 'own').getByRole('meter', { name: 'tpm' }).waitFor();
    expect(new URL(page.url()).searchParams.get('resource')).toBe('gpt-4');
    expect(problems).toEqual([]);
  });

  test('the title of the window names the entity on every page that is about one', async () => {
    const { page } = await openPage(browser, `${served.dashboard}limits?entity=acme/web`);
    await expect.poll(() => page.title()).toBe('acme/web · Limits · Headgate');
    await page.goto(`${served.dashboard}audit?of=entity&name=acme/web`);
    await expect.poll(() => page.title()).toBe('acme/web · Audit · Headgate');
  });
});
