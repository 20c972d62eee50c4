import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Limit } from '../../src/core/limit.js';
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
    // The address names the namespace, also in the links of the page.
    await page.getByRole('link', { name: 'elsewhere' }).click();
    await expect.poll(() => new URL(page.url()).search).toBe('?id=elsewhere&namespace=tenant-2');
    await page.reload();
    await expect.poll(() => page.getByLabel('Namespace').inputValue()).toBe('tenant-2');
    await page.getByRole('region', { name: 'elsewhere', exact: true }).waitFor();
    await page.goBack();
    await page.goBack();
    await page.getByRole('link', { name: 'acme/web' }).waitFor();
  });

  test('a link to a namespace that the token does not cover opens that of the token', async () => {
    const { page } = await openPage(browser, `${served.dashboard}entity?id=acme/web&namespace=tenant-2`);
    await signIn(page, app.secret);
    await page.getByRole('region', { name: 'acme/web' }).waitFor();
    expect(new URL(page.url()).search).toBe('?id=acme%2Fweb');
    expect(await page.evaluate('document.activeElement.tagName')).toBe('H1');
    await page.getByText('The namespace tenant-2 does not exist, or this token does not cover it.').waitFor();
  });

  test('a link to a namespace that does not exist opens that of the token, and says so', async () => {
    const { page } = await openPage(browser, `${served.dashboard}entity?id=acme/web&namespace=gone`);
    await signIn(page, admin.secret);
    await page
      .getByText('The namespace gone does not exist, or this token does not cover it. This is default.')
      .waitFor();
    await page.getByRole('region', { name: 'acme/web', exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe('?id=acme%2Fweb');
  });

  test('a list of more namespaces than the page reads says so, and has the namespace of the page', async () => {
    const { page } = await openPage(browser, 'about:blank');
    const items = Array.from({ length: 1_000 }, (_, at) => ({ name: `tenant-${at}` }));
    await page.route('**/v1/namespaces*', (route) => route.fulfill({ json: { items, next: 'more' } }));
    await page.goto(served.dashboard);
    await signIn(page, admin.secret);
    await page.getByText('the first 5000 namespaces').waitFor();
    expect(await page.getByLabel('Namespace').inputValue()).toBe('default');
  });

  test('a sign-in that the server does not answer keeps the token that was typed', async () => {
    const { page } = await openPage(browser, served.dashboard);
    await page.route('**/v1/session', (route) => route.abort('connectionrefused'));
    await signIn(page, admin.secret);
    await page.getByRole('alert').getByText('The server does not answer').waitFor();
    expect(await page.getByLabel('Token').inputValue()).toBe(admin.secret);
    await page.unroute('**/v1/session');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('live', { exact: true }).waitFor();
  });

  test('a token of the role app sees pauses and shadows, without the reason of a pause that it does not cover: in the gauges, and in a dry run', async () => {
    await served.limiter.config.setResource('quiet', { limits: [Limit.parse('rpm:5/min!shadow')] });
    const pause = { entityId: 'acme', resource: 'quiet', reason: 'report 9' };
    const send = async (path: string, body: object): Promise<Response> =>
      fetch(`${served.url}${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { authorization: `Bearer ${admin.secret}` },
      });
    await send('/v1/pause', { ...pause, forMs: 600_000 });
    const { page } = await openPage(browser, `${served.dashboard}entity?id=acme/web&resource=quiet`);
    await signIn(page, app.secret);
    const limits = page.getByRole('region', { name: 'Limits of acme/web on quiet' });
    await limits
      .getByText(/^acme on quiet is paused until .*: \(hidden: the token does not cover the paused entity\)/)
      .waitFor();
    await limits.getByText('shadow: refuses nothing').first().waitFor();
    await page.goto(`${served.dashboard}try?entity=acme/web&resource=quiet&consume=rpm=1`);
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('Would be denied (paused). acme on quiet is paused: (hidden: ').waitFor();
    expect(await page.content()).not.toContain('report 9');
    await send('/v1/resume', { entityId: 'acme', resource: 'quiet' });
  });

  test('a sign-out is final, also while the answer to a change of the namespace is on its way', async () => {
    await served.limiter.namespaces.register('tenant-3');
    const { page } = await openPage(browser, `${served.dashboard}entity`);
    await signIn(page, admin.secret);
    await page.getByLabel('Namespace').waitFor();
    let answer: () => Promise<void> = async () => {};
    const isAsked = new Promise<void>((resolve) => {
      void page.route('**/v1/session', (route) => {
        answer = () => route.continue();
        resolve();
      });
    });
    await page.getByLabel('Namespace').selectOption('tenant-3');
    await isAsked;
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    const answered = page.waitForResponse('**/v1/session');
    await answer();
    await (await answered).finished();
    await page.evaluate('new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))');
    expect(await page.getByRole('button', { name: 'Sign in' }).count()).toBe(1);
    expect(await page.evaluate('JSON.stringify({ ...sessionStorage })')).toBe('{}');
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
    // Its parent is refused to the token, so that it is no link.
    expect(await refused.getByRole('link', { name: 'acme', exact: true }).count()).toBe(0);
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
