import { mkdirSync, statSync } from 'node:fs';
import { Limit } from '../../../src/core/limit.js';
import { launchBrowser } from './browser.js';
import { type Served, startServed } from './served.js';
import { prepareEntities, startTraffic } from './traffic.js';

/** `--dark`: the same pictures in the dark theme, to look at. They are not kept. */
const isDark = process.argv.includes('--dark');
const FOLDER = isDark ? '.tmp/dark' : 'docs/dashboard';
const WIDTHS = [360, 1440] as const;
/** The upper part of the overview, for the README, where a wider picture would be too small to read. */
const README_SIZE = { width: 960, height: 660 } as const;
const END_OF_FIRST_ROW = `Math.round(document.querySelector('.grid').getBoundingClientRect().bottom)`;
const WARM_UP_MS = 12_000;
const SETTLE_MS = 1_200;
const HOUR_MS = 3_600_000;
/** The server refuses a longer wait. */
const LONGEST_WAIT_MS = 60_000;
const EARLIER_HOURS = 11;
/** Longer pages are cut: the rest repeats rows. */
const TALLEST = 2_600;

const USAGE = 'usage?resource=gpt-4&window=hourly&entity=acme/web&compare=acme/mobile&limit=tpm';
/** Each window is a block of lines on a narrow screen. */
const HOURS_WHERE_NARROW = 3;

/** The address of each page, and what to do there before the picture. */
const PAGES: readonly (readonly [name: string, path: string, press?: string])[] = [
  ['overview', ''],
  ['entity', 'entity?id=acme/web&resource=gpt-4'],
  ['usage', USAGE],
  ['leases', 'leases'],
  ['limits', 'limits?entity=acme/batch&resource=gpt-4', 'Edit the level resource'],
  ['audit', 'audit'],
  ['try', 'try?entity=acme/batch&resource=gpt-4&consume=rpm=1 tpm=19000 slots=1', 'Dry run'],
];

/** Pictures of every page with live traffic, for the guide and for the eye. */
async function takeScreenshots(): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  await using served = await startServed();
  const { limiter, url, dashboard } = served;
  await prepareEntities(limiter);
  // The limits of the parent refuse the traffic of the web application.
  await limiter.config.setEntity('acme/web', 'gpt-4', {
    limits: limitsOf('rpm:3000/min', 'tpm:400000/min!reserve.batch=0.3'),
  });
  await limiter.config.setEntity('acme', 'gpt-4', { limits: limitsOf('rpm:3000/min', 'tpm:120000/min') });
  for (let held = 0; held < 3; held++) {
    const consume = { rpm: 1, tpm: 4_000, slots: 1 };
    await post(`${url}/v1/acquire`, { entityId: 'acme/agent', resource: 'gpt-4', consume, leaseTtlMs: 600_000 });
  }
  const left = new AbortController();
  for (let waiting = 0; waiting < 2; waiting++) {
    const body = {
      entityId: 'acme/agent',
      resource: 'gpt-4',
      consume: { rpm: 1, slots: 1 },
      wait: { timeoutMs: LONGEST_WAIT_MS },
    };
    void keepWaiting(`${url}/v1/acquire`, body, left.signal);
  }
  await spendEarlier(served);
  const traffic = startTraffic(url);
  const browser = await launchBrowser();
  try {
    const context = await browser.newContext({ colorScheme: isDark ? 'dark' : 'light', reducedMotion: 'reduce' });
    const overview = await context.newPage();
    await overview.goto(dashboard);
    await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS));
    await post(`${url}/v1/pause`, {
      entityId: 'acme/mobile',
      resource: 'gpt-4',
      forMs: 600_000,
      reason: 'abuse report 4711',
    });
    await limiter.config.setEntity('acme/mobile', 'gpt-4', { limits: limitsOf('rpm:60/min', 'tpm:30000/min') });
    await limiter.config.setEntity('acme/mobile', 'gpt-4', { limits: limitsOf('rpm:90/min', 'tpm:30000/min') });
    await limiter.entities.update('acme/mobile', { metadata: { plan: 'trial', contact: 'ann@example.org' } });
    await limiter.entities.update('acme/mobile', { metadata: { plan: 'team', contact: 'ann@example.org' } });
    const owe = async (): Promise<void> =>
      post(`${url}/v1/charge`, { entityId: 'acme', resource: 'gpt-4', amounts: { tpm: 26_000 } });
    await served.countUsage();
    for (const width of WIDTHS) {
      for (const [name, path, press] of PAGES) {
        const page = name === 'overview' ? overview : await context.newPage();
        await page.setViewportSize({ width, height: width === 360 ? 740 : 900 });
        if (name === 'entity') await owe();
        const isLong = name === 'usage' && width === 360;
        if (name !== 'overview')
          await page.goto(`${dashboard}${path}${isLong ? `&from=${hoursAgo(HOURS_WHERE_NARROW)}` : ''}`);
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
        if (press !== undefined) await page.getByRole('button', { name: press }).first().click();
        if (name === 'limits')
          await page
            .getByLabel('Limits, one a line')
            .fill('rpm:900/min\ntpm:90000/min!reserve.batch=0.3\nslots:3/concurrent');
        await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
        const file = `${FOLDER}/${name}-${width}.png`;
        const height = Math.min(TALLEST, Number(await page.evaluate('document.documentElement.scrollHeight')));
        await page.screenshot({ path: file, fullPage: true, clip: { x: 0, y: 0, width, height } });
        console.log(`${file} ${Math.round(statSync(file).size / 1024)} KB`);
        if (name !== 'overview') await page.close();
      }
    }
    await overview.setViewportSize(README_SIZE);
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    // It ends below the row of the pauses, so that no panel is cut.
    const height = Number(await overview.evaluate(END_OF_FIRST_ROW)) + 8;
    const clip = { x: 0, y: 0, width: README_SIZE.width, height };
    await overview.screenshot({ path: `${FOLDER}/overview-960.png`, fullPage: true, clip });
  } finally {
    left.abort();
    await browser.close();
    await traffic.stop();
  }
}

/** Waits again when a wait has ended, until the signal. */
async function keepWaiting(url: string, body: object, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await fetch(url, { method: 'POST', body: JSON.stringify(body), signal }).catch(() => {});
  }
}

/** Usage of the hours before, so that the chart of the page Usage has more than one window. */
async function spendEarlier({ limiterAt }: Served): Promise<void> {
  const thisHour = Math.floor(Date.now() / HOUR_MS);
  for (let ago = EARLIER_HOURS; ago > 0; ago--) {
    const limiter = await limiterAt((thisHour - ago) * HOUR_MS);
    for (const [entityId, least] of [
      ['acme/web', 30_000],
      ['acme/mobile', 12_000],
    ] as const) {
      const tpm = least + ((ago * 7_919) % 25_000);
      await limiter.acquire({ entityId, resource: 'gpt-4', consume: { rpm: 1, tpm } });
    }
    await limiter.close();
  }
}

const limitsOf = (...texts: string[]): Limit[] => texts.map((text) => Limit.parse(text));

function hoursAgo(hours: number): string {
  return new Date((Math.floor(Date.now() / HOUR_MS) - hours) * HOUR_MS).toISOString().slice(0, 16);
}

async function post(url: string, body: object): Promise<void> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
}

await takeScreenshots();
