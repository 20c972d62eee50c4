import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';
import { prepareEntities, startTraffic } from '../support/dashboard/traffic.js';

const TEN_SLOTS = [Limit.concurrent('slots', 10)];

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
    const refusedMost = page.getByRole('region', { name: 'Top refused' }).getByRole('listitem').first();
    await expect.poll(() => refusedMost.innerText()).toMatch(/acme\/batch gpt-4\s+[1-9]/);
    const settled = page.getByRole('region', { name: 'Reserved and settled' });
    await expect
      .poll(() => settled.getByRole('row', { name: /^tpm/ }).innerText())
      .toMatch(/^tpm\s+[1-9][\d,]+\s+0\s+0$/);
    const lease = await acquire('settler', 'gpt-4', { rpm: 7 }, { leaseTtlMs: 60_000 });
    const { token } = ((await lease.json()) as { readonly lease: { readonly token: string } }).lease;
    expect((await post('/v1/leases/commit', { token })).status).toBe(200);
    await expect.poll(() => settled.getByRole('row', { name: /^rpm/ }).innerText()).toMatch(/^rpm\s+[\d,]+\s+7\s+0$/);
    await page
      .getByRole('region', { name: 'Slots in use' })
      .getByText(/acme\/batch gpt-4 slots 2 of 2/)
      .waitFor();
    await traffic.stop();
    expect(problems).toEqual([]);
  });

  test('names of the greatest length make no page wider than the window', async () => {
    const [id, resource] = ['i'.repeat(256), 'r'.repeat(128)];
    await served.limiter.entities.create({
      id,
      name: 'n'.repeat(256),
      metadata: { ['m'.repeat(60)]: 'v'.repeat(300) },
    });
    await served.limiter.pause({ entityId: id, resource, forMs: 600_000, reason: 'w'.repeat(256) });
    const lease = await served.limiter.acquire({ entityId: id, resource: 'gpt-4', consume: { rpm: 1 } });
    const wide: string[] = [];
    for (const width of [1280, 390]) {
      for (const address of [
        '',
        'entity',
        `entity?id=${id}&resource=${resource}`,
        'leases',
        `leases?entity=${id}`,
        `limits?entity=${id}&resource=${resource}`,
        'audit',
        `try?entity=${id}&resource=${resource}`,
      ]) {
        const { page } = await openPage(browser, `${served.dashboard}${address}`, { viewport: { width, height: 800 } });
        await page.getByText('live', { exact: true }).waitFor();
        await page.getByRole('heading', { level: 1 }).waitFor();
        await expect.poll(() => page.getByText('Reading…').count()).toBe(0);
        const body = JSON.stringify({ entityId: id, resource, consume: { rpm: 1 } });
        await fetch(`${served.url}/v1/acquire`, { method: 'POST', body });
        if (address === '') await page.getByRole('region', { name: 'Refused now' }).getByRole('link').first().waitFor();
        const scrolled = (await page.evaluate('document.documentElement.scrollWidth')) as number;
        if (scrolled > width) wide.push(`${width} ${address.slice(0, 12)}: ${scrolled}`);
        await page.close();
      }
    }
    await lease.rollback();
    expect(wide).toEqual([]);
  });

  test('the gauge of a limit moves when the entity spends', async () => {
    await acquire('gauge', 'gpt-4', { tpm: 1 });
    const { page, problems } = await openPage(browser, `${served.dashboard}entity?id=gauge&resource=gpt-4`);
    await page.getByRole('meter', { name: 'tpm' }).waitFor();
    await acquire('gauge', 'gpt-4', { tpm: 60_000 });
    await expect.poll(() => used(page, 'tpm')).toMatch(/^5\d,\d{3} of 90,000 used, full again in/);
    await post('/v1/charge', { entityId: 'gauge', resource: 'gpt-4', amounts: { tpm: 80_000 } });
    await expect.poll(() => used(page, 'tpm')).toMatch(/90,000 of 90,000 used, [\d,]+ in debt/);
    expect(await page.getByText('batch must leave 27,000').count()).toBe(1);
    expect(problems).toEqual([]);
  });

  test('a release of a lease gives its slot to a caller that waits, and the overview shows the waiting caller', async () => {
    await served.limiter.entities.create({ id: 'holders' });
    await served.limiter.entities.create({ id: 'held', parentId: 'holders', cascade: true });
    // Both levels are full: a release of one alone would not help.
    for (const id of ['held', 'holders'])
      await served.limiter.config.setEntity(id, 'gpu', { limits: [Limit.concurrent('slots', 1)] });
    expect((await acquire('held', 'gpu', { slots: 1 })).status).toBe(200);
    const waiting = acquire('held', 'gpu', { slots: 1 }, { wait: { timeoutMs: 50_000 } });
    const { page, problems } = await openPage(browser, served.dashboard);
    await page
      .getByRole('region', { name: 'Waiting calls' })
      .getByText(/^held gpu slots 1, the oldest for/)
      .waitFor();
    await page.goto(`${served.dashboard}leases?entity=held`);
    await page.getByRole('button', { name: /^Release: lease/ }).click();
    await page.getByRole('button', { name: /^Release now: lease/ }).click();
    await page.getByText(/^The lease \S+ was released at all its levels/).waitFor();
    // An effect moves the focus after the line was painted.
    await expect.poll(() => page.evaluate('document.activeElement.textContent')).toMatch(/was released/);
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
    // The deny cache may know the balance.
    await page.getByText(/^Denied \(exhausted\).*\. It fits in/).waitFor();
    const own = page.getByRole('table', { name: 'Limits of acme/mobile' });
    expect(await own.getByRole('row', { name: /✗ refused/ }).innerText()).toMatch(
      /tpm:90000.*70,000.*too many, fits in/s,
    );
    const parent = page.getByRole('table', { name: 'Limits of acme', exact: true });
    expect(await parent.getByRole('row', { name: /✓ fits/ }).count()).toBe(2);
    expect(new URL(page.url()).searchParams.get('consume')).toBe('rpm=1 tpm=70000');
    expect(problems).toEqual([]);
  });

  test('a dry run on the page Try shows what the ask would leave, and another address has its own ask', async () => {
    const address = `${served.dashboard}try?entity=dry&resource=gpt-4&consume=rpm=10`;
    const { page, problems } = await openPage(browser, address);
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('Would be granted. Nothing was taken.').waitFor();
    const table = page.getByRole('table', { name: 'Limits of dry' });
    expect(await table.getByRole('row', { name: /✓ fits/ }).innerText()).toMatch(/600\s+10\s+590/);
    await page.getByText('limits from: resource').waitFor();
    await page.getByLabel('Consume').fill('rpm=601');
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('Would be denied (impossible).').waitFor();
    await page.evaluate(
      `history.pushState(null, '', '/dashboard/try?entity=other'); dispatchEvent(new Event('popstate'))`,
    );
    await expect.poll(() => page.getByLabel('Entity').inputValue()).toBe('other');
    expect(await page.getByText('Would be denied (impossible).').count()).toBe(0);
    expect(problems).toEqual([]);
  });

  test('the page Leases lists the lease that is held longest first, and no lease that has expired', async () => {
    const { page, problems } = await openPage(browser, `${served.dashboard}leases?entity=holder`);
    const old = await served.limiterAt(Date.now() - 600_000);
    for (const [leaseTtlMs, amount] of [
      [3_600_000, 3],
      [60_000, 4],
    ] as const) {
      await old.acquire({
        entityId: 'holder',
        resource: 'aged',
        consume: { slots: amount },
        leaseTtlMs,
        limits: TEN_SLOTS,
      });
    }
    await served.limiter.acquire({
      entityId: 'holder',
      resource: 'a-new',
      consume: { slots: 1 },
      leaseTtlMs: 600_000,
      limits: TEN_SLOTS,
    });
    const rows = page.getByRole('table', { name: 'Leases with a holder' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(3);
    expect((await rows.allInnerTexts()).slice(1).map((text) => /slots=\d/.exec(text)?.[0])).toEqual([
      'slots=3',
      'slots=1',
    ]);
    expect(problems).toEqual([]);
    await old.close();
  });

  test('the values at a point of a chart are shown where the pointer is, and where the keyboard moves it', async () => {
    await acquire('charted', 'gpt-4', { rpm: 5 });
    await served.countUsage();
    const { page, problems } = await openPage(
      browser,
      `${served.dashboard}usage?resource=gpt-4&entity=charted&limit=rpm`,
    );
    const caption = page.locator('figcaption');
    await expect.poll(() => caption.innerText()).toBe('charted');
    await page.keyboard.press('Tab');
    await page.getByRole('slider').focus();
    await expect.poll(() => caption.innerText()).toMatch(/^charted 5\s+\d\d-\d\d \d\d:00$/);
    await page.getByRole('slider').blur();
    await expect.poll(() => caption.innerText()).toBe('charted');
    await page.getByRole('img', { name: 'rpm in 1 window: charted 5' }).hover();
    await expect.poll(() => caption.innerText()).toMatch(/^charted 5\s/);
    expect(problems).toEqual([]);
  });
});
