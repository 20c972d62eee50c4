import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';
import { prepareEntities } from '../support/dashboard/traffic.js';

const HOUR_MS = 3_600_000;

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
    await page.getByText('Buckets that it reaches: 1, of 1 entity.').waitFor();
    await page.getByRole('button', { name: 'Apply', exact: true }).click();
    await page.getByText('The limits of edited on gpt-4 were changed.').waitFor();
    expect((await acquire('edited', 'gpt-4', { rpm: 1 })).status).toBe(200);
    expect((await acquire('edited', 'gpt-4', { rpm: 1 })).status).toBe(429);
    await page.goto(`${served.dashboard}audit?of=entity&name=edited`);
    await page.getByText('rpm:1/min').waitFor();
    expect(problems).toEqual([]);
  });

  test('the preview shows what replaces the limits that apply now, names words that are no limits, and the focus stays in the form', async () => {
    const { page, problems } = await openPage(browser, `${served.dashboard}limits?entity=hidden&resource=gpt-4`);
    const card = page.getByRole('article', { name: 'entity and resource' });
    const preview = card.getByRole('status', { name: 'Preview' });
    const focused = () => page.evaluate('document.activeElement.tagName + document.activeElement.textContent.trim()');
    await card.getByRole('button', { name: 'Edit the level entity and resource' }).click();
    await expect.poll(focused).toBe('TEXTAREA');
    await page.keyboard.type('rpm:5/min');
    await preview.getByText('Until now the limits of every entity on gpt-4 apply.').waitFor();
    const removed = await preview.locator('del').allInnerTexts();
    expect(removed.join(' ')).toMatch(/rpm:600\/min.*tpm:90000\/min.*slots:3/);
    await card.getByLabel('Limits, one a line').fill('rpm:abc foo');
    await preview.getByText('Not a limit: rpm:abc, foo').waitFor();
    await card.getByRole('button', { name: 'Cancel' }).click();
    await expect.poll(focused).toBe('BUTTONEdit');
    expect(problems).toEqual([]);
  });

  test('an edit does not overwrite what another operator has written since its preview', async () => {
    const { page, problems } = await openPage(browser, `${served.dashboard}limits?resource=raced`);
    const card = page.getByRole('article', { name: 'resource', exact: true });
    const stored = async () => (await served.limiter.config.get({ resource: 'raced' }))?.limits.map(String).toSorted();
    await card.getByRole('button', { name: 'Edit the level resource' }).click();
    await card.getByLabel('Limits, one a line').fill('rpm:5/min');
    await served.limiter.config.setResource('raced', { limits: [Limit.perMinute('tpm', 77)] });
    await card.getByRole('button', { name: 'Apply' }).click();
    await card.getByRole('alert').getByText('were changed meanwhile. Nothing was written').waitFor();
    expect(await stored()).toEqual(['tpm:77/min']);
    // What was typed stays, and the preview shows what it would remove.
    await card.getByText('Changed since you began. Now: tpm:77/min').waitFor();
    await card.getByRole('status', { name: 'Preview' }).getByText('tpm:77/min').waitFor();
    await card.getByLabel('Limits, one a line').fill('rpm:5/min\ntpm:77/min');
    await card.getByRole('button', { name: 'Apply' }).click();
    await card.getByText('The limits of every entity on raced were changed.').waitFor();
    expect(await stored()).toEqual(['rpm:5/min', 'tpm:77/min']);
    expect(problems).toEqual([]);
  });

  test.each([
    ['ahead', 3, 0, 'paused until'],
    ['behind', -3, -2, 'not paused'],
  ])(
    'a browser whose clock is %s by %i hours shows whether a pause of an hour runs',
    async (id, hours, begun, expected) => {
      await served.limiter.entities.create({ id });
      const then = await served.limiterAt(Date.now() + begun * HOUR_MS);
      await then.pause({ entityId: id, forMs: HOUR_MS, reason: 'by the clock of the server' });
      await then.close();
      const { page } = await openPage(browser, 'about:blank');
      await page.addInitScript(`{ const now = Date.now; Date.now = () => now() + ${hours * HOUR_MS}; }`);
      await page.goto(`${served.dashboard}limits?entity=${id}`);
      const panel = page.getByRole('region', { name: 'Pause and resume' });
      const said = /is (not paused|paused until)/;
      await expect.poll(() => panel.innerText()).toMatch(said);
      expect(said.exec(await panel.innerText())?.[1]).toBe(expected);
    },
  );

  test('the preview of a resource counts the buckets that have its limits now, and says that none are counted for the system', async () => {
    for (const entityId of ['x', 'y', 'own']) await acquire(entityId, 'counted', { rpm: 1 });
    await served.limiter.config.setEntity('own', 'counted', { limits: [Limit.perMinute('rpm', 9)] });
    const { page, problems } = await openPage(browser, `${served.dashboard}limits?resource=counted`);
    const edit = async (level: string): Promise<void> => {
      await page.getByRole('button', { name: `Edit the level ${level}` }).click();
      await page.getByLabel('Limits, one a line').fill('rpm:7/min');
    };
    await edit('resource');
    await page.getByText('Buckets that it reaches: 2, of 2 entities.').waitFor();
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
    await page.getByRole('button', { name: 'Resume stopped on gpt-4' }).click();
    await pauses.getByText('None was seen since this page was opened.').waitFor();
    expect((await acquire('stopped', 'gpt-4', { rpm: 1 })).status).toBe(200);
    expect([...problems, ...overview.problems]).toEqual([]);
  });

  test('two pauses of an entity are two lines, and each is resumed by its own button', async () => {
    const { page, problems } = await openPage(browser, `${served.dashboard}limits?entity=twice&resource=gpt-4`);
    const panel = page.getByRole('region', { name: 'Pause and resume' });
    await served.limiter.entities.create({ id: 'twice' });
    for (const target of [{}, { resource: 'gpt-4' }]) {
      await served.limiter.pause({ entityId: 'twice', ...target, forMs: 600_000, reason: 'report 8' });
    }
    await panel.getByText(/^twice on every resource is paused until .*: report 8/).waitFor();
    await panel.getByText(/^twice on gpt-4 is paused until .*: report 8/).waitFor();
    await panel.getByRole('button', { name: 'Resume twice on every resource' }).click();
    await panel.getByText('twice on every resource was resumed.').waitFor();
    await expect.poll(() => panel.getByRole('button', { name: /^Resume/ }).count()).toBe(1);
    expect((await acquire('twice', 'gpt-4', { rpm: 1 })).status).toBe(429);
    await panel.getByRole('button', { name: 'Resume twice on gpt-4' }).click();
    await panel.getByText('twice is not paused.').waitFor();
    expect((await acquire('twice', 'gpt-4', { rpm: 1 })).status).toBe(200);
    expect(problems).toEqual([]);
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
    // What is in the form is replaced only after a question.
    await file.fill('typed');
    await page.getByRole('button', { name: 'Load from the store' }).click();
    expect(await file.inputValue()).toBe('typed');
    await page.getByRole('button', { name: 'Replace the text' }).click();
    await expect.poll(() => file.inputValue()).toContain('"rpm:60/min"');
    await file.fill((await file.inputValue()).replace('"rpm:60/min"', '"rpm:61/min"'));
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    const planned = page.getByText('1 change. Nothing was written yet.');
    await planned.waitFor();
    await page.getByText(/^Objects of the file that need no change: \d+$/).waitFor();
    const text = await file.inputValue();
    await file.fill(`${text} `);
    await expect.poll(() => planned.count()).toBe(0);
    await file.fill(text);
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    await page.getByRole('button', { name: 'Apply the plan' }).click();
    await page.getByText('1 change made.').waitFor();
    expect(await systemLimits()).toEqual(['rpm:61/min']);
    expect(problems).toEqual([]);
  });

  test('a plan is applied only as it was shown', async () => {
    const { page } = await openPage(browser, `${served.dashboard}limits`);
    const file = page.getByLabel('Content as YAML or JSON');
    await page.getByRole('button', { name: 'Load from the store' }).click();
    await expect.poll(() => file.inputValue()).toContain('"rpm:61/min"');
    await file.fill((await file.inputValue()).replace('"rpm:61/min"', '"rpm:62/min"'));
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    await page.getByText('1 change. Nothing was written yet.').waitFor();
    await served.limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 63)] });
    await page.getByRole('button', { name: 'Apply the plan' }).click();
    await page.getByRole('alert').getByText('was changed meanwhile. Nothing was written').waitFor();
    expect(await systemLimits()).toEqual(['rpm:63/min']);
    await page.getByRole('button', { name: 'Apply the plan' }).click();
    await page.getByText('1 change made.').waitFor();
    expect(await systemLimits()).toEqual(['rpm:62/min']);
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
