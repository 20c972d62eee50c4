import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';
import { prepareEntities } from '../support/dashboard/traffic.js';

/** Notes in the page when it first shows each reason `report <number>`, by the clock of the machine. */
const WATCH_REPORTS = `(() => {
  window.seenAt = {};
  new MutationObserver(() => {
    for (const [, number] of document.body.textContent.matchAll(/report (\\d+)/g))
      window.seenAt[number] ??= performance.timeOrigin + performance.now();
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
})()`;

/** When the page began to send each request for a pause, by the clock of the machine. */
const PAUSE_REQUESTS = `performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/v1/pause'))
  .map(({ startTime }) => performance.timeOrigin + startTime)`;

describe.skipIf(CHROMIUM.missing)(`the page Limits of the dashboard${CHROMIUM.note}`, () => {
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

  const acquire = async (entityId: string, resource: string, consume: object): Promise<Response> =>
    fetch(`${served.url}/v1/acquire`, { method: 'POST', body: JSON.stringify({ entityId, resource, consume }) });
  const systemLimits = async (): Promise<readonly string[]> =>
    ((await served.limiter.config.get('system'))?.limits ?? []).map(String);
  const pause = async (page: Page, reason: string): Promise<void> => {
    await page.getByLabel('Reason').fill(reason);
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByText(`: ${reason}`, { exact: false }).first().waitFor();
  };

  test('an edit of a level shows what changes for whom, changes the next decision, and is in the audit', async () => {
    await acquire('edited', 'gpt-4', { rpm: 1 });
    const { page, problems } = await openPage(browser, `${served.dashboard}limits?entity=edited&resource=gpt-4`);
    await page.getByRole('button', { name: 'Edit the level entity and resource' }).click();
    await page.getByLabel('Limits, one a line').fill('rpm:1/min');
    await page.getByText('edited on gpt-4 only.').waitFor();
    await page.getByText('Buckets now: 1 of 1 entity.').waitFor();
    await page.getByRole('button', { name: 'Apply', exact: true }).click();
    await page.getByText('The limits of edited on gpt-4 were changed.').waitFor();
    expect((await acquire('edited', 'gpt-4', { rpm: 1 })).status).toBe(200);
    expect((await acquire('edited', 'gpt-4', { rpm: 1 })).status).toBe(429);
    await page.goto(`${served.dashboard}audit?of=entity&name=edited`);
    await page.getByText('rpm:1/min').waitFor();
    expect(problems).toEqual([]);
  });

  test('the preview of a resource counts the buckets that have its limits now, and says that none are counted for the system', async () => {
    for (const entityId of ['x', 'y', 'own']) await acquire(entityId, 'counted', { rpm: 1 });
    await served.limiter.config.setEntity('own', 'counted', { limits: [Limit.perMinute('rpm', 9)] });
    const { page, problems } = await openPage(browser, `${served.dashboard}limits?resource=counted`);
    const edit = async (level: string): Promise<void> => {
      await page.getByRole('button', { name: `Edit the level ${level}` }).click();
      await page.getByLabel('Limits, one a line').fill('rpm:7/min');
    };
    await edit('resource');
    await page.getByText('Buckets now: 2 of 2 entities.').waitFor();
    await page.getByText(/^Not for 1 level with limits of their own: own on counted/).waitFor();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await edit('system');
    await page.getByText('Buckets are not counted: the store has no list of all buckets.').waitFor();
    expect(problems).toEqual([]);
  });

  test('a pause on the page Limits is seen in an open overview, denies the next ask, and ends with a resume', async () => {
    const overview = await openPage(browser, served.dashboard);
    await overview.page.getByText('live', { exact: true }).waitFor();
    const { page, problems } = await openPage(browser, `${served.dashboard}limits?entity=stopped&resource=gpt-4`);
    await page.getByLabel('Reason').fill('report 4711');
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    const pauses = overview.page.getByRole('region', { name: 'Paused' });
    await pauses.getByText(/paused until .*: report 4711/).waitFor();
    expect((await acquire('stopped', 'gpt-4', { rpm: 1 })).status).toBe(429);
    await page.getByRole('button', { name: 'Resume', exact: true }).click();
    await pauses.getByText('This server has made or met no pause.').waitFor();
    expect((await acquire('stopped', 'gpt-4', { rpm: 1 })).status).toBe(200);
    expect([...problems, ...overview.problems]).toEqual([]);
  });

  test('an open overview shows each pause within 2 seconds of the request that makes it', async () => {
    const overview = await openPage(browser, served.dashboard);
    await overview.page.getByText('live', { exact: true }).waitFor();
    await overview.page.evaluate(WATCH_REPORTS);
    const { page, problems } = await openPage(browser, `${served.dashboard}limits?entity=timed&resource=gpt-4`);
    const numbers = ['101', '102', '103', '104', '105'];
    for (const number of numbers) {
      await pause(page, `report ${number}`);
      await overview.page.getByRole('region', { name: 'Paused' }).getByText(`report ${number}`).waitFor();
    }
    const sentAt = (await page.evaluate(PAUSE_REQUESTS)) as readonly number[];
    const seenAt = (await overview.page.evaluate('window.seenAt')) as Readonly<Record<string, number>>;
    const delays = numbers.map((number, at) => (seenAt[number] ?? Infinity) - (sentAt[at] ?? 0));
    expect(sentAt).toHaveLength(numbers.length);
    expect(delays.filter((delay) => delay < 0 || delay > 2_000)).toEqual([]);
    expect([...problems, ...overview.problems]).toEqual([]);
  });

  test('a limits file is loaded, edited, planned and applied', async () => {
    const { page, problems } = await openPage(browser, `${served.dashboard}limits`);
    const file = page.getByLabel('Content as YAML or JSON');
    await page.getByRole('button', { name: 'Load from the store' }).click();
    await expect.poll(() => file.inputValue()).toContain('"rpm:60/min"');
    await file.fill((await file.inputValue()).replace('"rpm:60/min"', '"rpm:61/min"'));
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    await page.getByText('1 change. Nothing was written yet.').waitFor();
    await page.getByRole('button', { name: 'Apply the plan' }).click();
    await page.getByText('1 change made.').waitFor();
    expect(await systemLimits()).toEqual(['rpm:61/min']);
    expect(problems).toEqual([]);
  });

  test('a limits file in YAML is planned and applied, and a wrong one is refused with its place in the text', async () => {
    const { page, problems } = await openPage(browser, `${served.dashboard}limits`);
    const file = page.getByLabel('Content as YAML or JSON');
    await file.fill('namespace: default\nresources:\n  yaml: { limits: ["rpm:6/min"] } # of the file\n');
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    await page.getByText(/^\d+ changes?\. Nothing was written yet\.$/).waitFor();
    await page.getByText('rpm:6/min').waitFor();
    await page.getByRole('button', { name: 'Apply the plan' }).click();
    await page.getByText(/^\d+ changes? made\.$/).waitFor();
    expect((await served.limiter.config.get({ resource: 'yaml' }))?.limits.map(String)).toEqual(['rpm:6/min']);
    expect(problems).toEqual([]);
    await file.fill('namespace: default\nresources:\n  yaml: { limits: ["rpm:6"] }\n');
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    await page
      .getByRole('alert')
      .getByText(/^limits file:3:20: resources\.yaml\.limits\[0\]: expected a limit/)
      .waitFor();
    expect(await page.getByRole('button', { name: 'Apply the plan' }).isDisabled()).toBe(true);
  });
});
