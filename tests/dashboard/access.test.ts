import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { credentialOf } from '../support/server/request-server.js';
import { CHROMIUM, launchBrowser } from '../support/dashboard/browser.js';
import { openPage } from '../support/dashboard/open-page.js';
import { type Served, startServed } from '../support/dashboard/served.js';
import { prepareEntities } from '../support/dashboard/traffic.js';

const admin = credentialOf({ name: 'ops', role: 'admin', namespace: '*' });
const app = credentialOf({ name: 'web', role: 'app', entityPrefix: 'acme/web' });

describe.skipIf(CHROMIUM.missing)(`signing in to the dashboard${CHROMIUM.note}`, () => {
  let served: Served;
  let browser: Browser;

  beforeAll(async () => {
    [served, browser] = await Promise.all([startServed([admin.token, app.token]), launchBrowser()]);
    await prepareEntities(served.limiter);
  });
  afterAll(async () => {
    await browser?.close();
    await served?.[Symbol.asyncDispose]();
  });

  const signIn = async (page: Page, secret: string): Promise<void> => {
    await page.getByLabel('Token').fill(secret);
    await page.getByRole('button', { name: 'Sign in' }).click();
  };
  const acquire = async (entityId: string, secret: string): Promise<void> => {
    const body = JSON.stringify({ entityId, resource: 'gpt-4', consume: { tpm: 90_001 } });
    const headers = { authorization: `Bearer ${secret}` };
    expect((await fetch(`${served.url}/v1/acquire`, { method: 'POST', body, headers })).status).toBe(422);
  };

  test('a wrong token is refused; an admin reads every page; the token is kept for the tab until the sign-out', async () => {
    const { page } = await openPage(browser, `${served.dashboard}audit`);
    await signIn(page, 'hg_wrong');
    await page.getByText('The server does not know this token.').waitFor();
    await signIn(page, admin.secret);
    await page.getByText('config.set').first().waitFor();
    await page.reload();
    await page.getByText('config.set').first().waitFor();
    await page.getByText('live', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    expect(await page.evaluate('JSON.stringify([{ ...sessionStorage }, { ...localStorage }])')).toBe('[{},{}]');
  });

  test('an admin of every namespace chooses one, and sees its entities only', async () => {
    await served.limiter.namespaces.register('tenant-2');
    await (await served.limiter.in('tenant-2')).entities.create({ id: 'elsewhere' });
    const { page } = await openPage(browser, `${served.dashboard}entity`);
    await signIn(page, admin.secret);
    await page.getByRole('link', { name: 'acme/web' }).waitFor();
    await page.getByLabel('Namespace').selectOption('tenant-2');
    await page.getByRole('link', { name: 'elsewhere' }).waitFor();
    expect(await page.getByRole('link', { name: 'acme/web' }).count()).toBe(0);
  });

  test('a token of the role app sees the decisions and limits of its own entities only', async () => {
    const { page, problems } = await openPage(browser, served.dashboard);
    await signIn(page, app.secret);
    await page.getByText('live', { exact: true }).waitFor();
    const links = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts();
    expect(links).toEqual(['Overview', 'Entity', 'Usage', 'Try']);
    await acquire('acme/batch', admin.secret);
    await acquire('acme/web', admin.secret);
    const refused = page.getByRole('region', { name: 'Refused now' });
    await refused.getByRole('link', { name: 'acme/web' }).first().waitFor();
    expect(await refused.getByRole('link', { name: 'acme/batch' }).count()).toBe(0);
    await refused.getByRole('link', { name: 'acme/web' }).first().click();
    await page.getByRole('meter', { name: 'tpm' }).first().waitFor();
    // Before the sign-in the server answers 401, which the browser reports.
    expect(problems.filter((problem) => !problem.includes('401'))).toEqual([]);
    await page.goto(`${served.dashboard}entity?id=acme/batch&resource=gpt-4`);
    await page.getByText('The token covers entities that begin with acme/web').waitFor();
    await page.goto(`${served.dashboard}audit`);
    await page.getByText('This page needs a token of the role admin.').waitFor();
  });
});
