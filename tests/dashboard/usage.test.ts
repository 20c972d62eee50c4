import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Usage, UsageRange } from '../../src/limiter/api/usage-api.js';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';
import { prepareEntities } from '../support/dashboard/traffic.js';

/** A canvas does not tell what is on it. */
const COLLECT_DRAWN_TEXTS = `(() => {
  window.drawnTexts = [];
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    window.drawnTexts.push(text);
    return fillText.call(this, text, ...rest);
  };
})()`;

const HOUR_MS = 3_600_000;

describe.skipIf(CHROMIUM.missing)(`the page Usage of the dashboard${CHROMIUM.note}`, () => {
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

  const csvOf = async (page: Page): Promise<readonly string[]> => {
    const saving = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Save as CSV' }).click();
    return readFileSync(await (await saving).path(), 'utf8')
      .trimEnd()
      .split('\r\n');
  };
  const query = async (range: UsageRange): Promise<readonly Usage[]> => {
    const found: Usage[] = [];
    for await (const usage of served.limiter.usage.query(range)) found.push(usage);
    return found;
  };
  /** The lines of the CSV, written here a second time. */
  const linesOf = (found: readonly Usage[]): readonly string[] => [
    'entity,resource,window,start,end,rpm,acquires,expired',
    ...found.map(({ entityId, resource, window, windowStart, windowEnd, tokens, acquires, expired }) => {
      const id = entityId.startsWith('=') ? `"'=cmd,""x"""` : entityId;
      const [start, end] = [windowStart.toISOString(), windowEnd.toISOString()];
      return `${id},${resource},${window},${start},${end},${tokens['rpm']},${acquires},${expired}`;
    }),
  ];

  test('the CSV of the page Usage has what usage.query returns', async () => {
    for (const entityId of ['acme/web', '=cmd,"x"']) {
      const body = JSON.stringify({ entityId, resource: 'counted', consume: { rpm: 3 } });
      expect((await fetch(`${served.url}/v1/acquire`, { method: 'POST', body })).status).toBe(200);
    }
    await served.countUsage();
    const { page, problems } = await openPage(browser, `${served.dashboard}usage?resource=counted&window=daily`);
    const expected = await query({ resource: 'counted', window: 'daily' });
    expect(expected.map(({ entityId }) => entityId)).toEqual(expect.arrayContaining(['acme/web', 'acme', '=cmd,"x"']));
    expect(await csvOf(page)).toEqual(linesOf(expected));
    expect(problems).toEqual([]);
  });

  test('the usage of all entities counts a call that cascades once for callers and once for parents, and Show reads again', async () => {
    const take = async (): Promise<void> => {
      const body = JSON.stringify({ entityId: 'acme/web', resource: 'apart', consume: { rpm: 3 } });
      expect((await fetch(`${served.url}/v1/acquire`, { method: 'POST', body })).status).toBe(200);
      await served.countUsage();
    };
    await take();
    const { page, problems } = await openPage(browser, `${served.dashboard}usage?resource=apart&limit=rpm`);
    await page.getByRole('img', { name: 'rpm in 1 window: entities without children 3, their parents 3' }).waitFor();
    await take();
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByRole('img', { name: 'rpm in 1 window: entities without children 6, their parents 6' }).waitFor();
    expect(problems).toEqual([]);
  });

  test('two entities are compared by month, and the CSV has both', async () => {
    for (const [entityId, rpm] of [
      ['acme/web', 3],
      ['acme/mobile', 5],
    ] as const) {
      const body = JSON.stringify({ entityId, resource: 'compared', consume: { rpm } });
      expect((await fetch(`${served.url}/v1/acquire`, { method: 'POST', body })).status).toBe(200);
    }
    await served.countUsage();
    const address = `${served.dashboard}usage?resource=compared&entity=acme/web&limit=rpm`;
    const { page, problems } = await openPage(browser, address);
    await page.getByLabel('Compare with').fill('acme/mobile');
    await page.getByLabel('Window', { exact: true }).selectOption('monthly');
    await page.getByRole('button', { name: 'Show' }).click();
    await page.getByRole('img', { name: 'rpm in 1 window: acme/web 3, acme/mobile 5' }).waitFor();
    const range = { resource: 'compared', window: 'monthly' } as const;
    const expected = [
      ...(await query({ ...range, entityId: 'acme/web' })),
      ...(await query({ ...range, entityId: 'acme/mobile' })),
    ];
    const rows = page.getByRole('table', { name: /^Usage records/ }).getByRole('row');
    expect((await rows.allInnerTexts()).slice(1).map((row) => row.slice(0, 7))).toEqual(
      expected.map(({ windowStart }) => windowStart.toISOString().slice(0, 7)),
    );
    expect(await csvOf(page)).toEqual(linesOf(expected));
    expect(problems).toEqual([]);
  });

  test('the usage of an entity without a resource is that of all its resources, in the chart, in the totals and in the CSV', async () => {
    for (const [resource, rpm] of [
      ['one', 3],
      ['two', 4],
    ] as const) {
      const body = JSON.stringify({ entityId: 'wide', resource, consume: { rpm } });
      expect((await fetch(`${served.url}/v1/acquire`, { method: 'POST', body })).status).toBe(200);
    }
    await served.countUsage();
    const { page, problems } = await openPage(browser, `${served.dashboard}usage?entity=wide&limit=rpm`);
    await page.getByRole('img', { name: 'rpm in 1 window: wide 7' }).waitFor();
    const totals = page.getByRole('table', { name: 'Total rpm by resource' }).getByRole('row');
    expect((await totals.allInnerTexts()).slice(1).map((row) => row.split(/\s+/))).toEqual([
      ['two', '4'],
      ['one', '3'],
    ]);
    const expected = await Promise.all(
      ['one', 'two'].map(async (resource) => query({ entityId: 'wide', resource, window: 'hourly' })),
    );
    expect(await csvOf(page)).toEqual(linesOf(expected.flat()));
    expect(problems).toEqual([]);
  });

  test('the axis of a chart that is drawn gets the names of the windows that are read later', async () => {
    const hourMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
    const spend = async (startMs: number): Promise<string> => {
      const past = await served.limiterAt(startMs);
      await past.acquire({ entityId: 'later', resource: 'drawn', consume: { rpm: 1 } });
      await past.close();
      await served.countUsage();
      return new Date(startMs).toISOString().slice(5, 16).replace('T', ' ');
    };
    const { page, problems } = await openPage(browser, 'about:blank');
    await page.addInitScript(COLLECT_DRAWN_TEXTS);
    const drawn = () => page.evaluate('window.drawnTexts');
    const first = await spend(hourMs - 2 * HOUR_MS);
    await page.goto(`${served.dashboard}usage?resource=drawn&entity=later`);
    await expect.poll(drawn).toContain(first);
    const earlier = await spend(hourMs - 5 * HOUR_MS);
    await page.getByRole('button', { name: 'Show' }).click();
    await expect.poll(drawn).toContain(earlier);
    expect(problems).toEqual([]);
  });

  test('the axis of a chart of counts has no fractions', async () => {
    for (let call = 0; call < 11; call++) {
      const body = JSON.stringify({ entityId: 'eleven', resource: 'whole', consume: { rpm: 1 } });
      expect((await fetch(`${served.url}/v1/acquire`, { method: 'POST', body })).status).toBe(200);
    }
    await served.countUsage();
    const { page, problems } = await openPage(browser, 'about:blank');
    await page.addInitScript(COLLECT_DRAWN_TEXTS);
    await page.goto(`${served.dashboard}usage?resource=whole&entity=eleven`);
    await page.getByRole('img', { name: 'grants in 1 window: eleven 11' }).waitFor();
    const drawn = async () => (await page.evaluate('window.drawnTexts')) as readonly string[];
    await expect.poll(drawn).toContain('10');
    expect((await drawn()).filter((text) => /^\d+\.\d/.test(text))).toEqual([]);
    expect(problems).toEqual([]);
  });

  test('a range of the page Usage is in the address, shows its windows only, and its CSV has what usage.query returns', async () => {
    const startMs = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 6 * HOUR_MS;
    for (let at = 0; at < 6; at++) {
      const past = await served.limiterAt(startMs + at * HOUR_MS);
      await past.acquire({ entityId: 'acme/web', resource: 'ranged', consume: { rpm: 1 } });
      await past.close();
    }
    await served.countUsage();
    const { page, problems } = await openPage(browser, `${served.dashboard}usage?resource=ranged`);
    const range = { resource: 'ranged', window: 'hourly' } as const;
    expect(await csvOf(page)).toEqual(linesOf(await query(range)));
    const [from, to] = [new Date(startMs + HOUR_MS), new Date(startMs + 4 * HOUR_MS)];
    const typed = (at: Date): string => at.toISOString().slice(0, 16);
    const show = async (first: string, end: string): Promise<void> => {
      await page.getByLabel('From (UTC)').fill(first);
      await page.getByLabel('Before (UTC)').fill(end);
      await page.getByRole('button', { name: 'Show' }).click();
    };
    await show(typed(from), typed(to));
    // Three windows, each of the entity and of its parent; and the heads of the columns.
    const rows = page.getByRole('table', { name: /^Usage records/ }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(7);
    expect(new URL(page.url()).searchParams.get('from')).toBe(typed(from));
    const expected = await query({ ...range, from, to });
    expect(expected).toHaveLength(6);
    expect(await csvOf(page)).toEqual(linesOf(expected));
    await page.reload();
    await expect.poll(() => rows.count()).toBe(7);
    await show('', typed(new Date(startMs)));
    await page.getByText('There is no usage in these windows.').waitFor();
    expect(problems).toEqual([]);
  });
});
