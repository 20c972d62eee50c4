import type { CDPSession, Page } from 'playwright-core';
import { memory } from '../src/backends/embedded/memory.js';
import { Limit } from '../src/core/limit.js';
import { RateLimiter } from '../src/limiter/rate-limiter.js';
import { EventHub, readDashboard, serve } from '../src/server/index.js';
import { launchBrowser } from '../tests/support/dashboard/browser.js';
import { tenantOf } from './flood-stream.js';

/**
 * Shows the overview of a server that reports 5,000 denials a second of 10,000 entities, and prints every 30 seconds the
 * memory of the page after a garbage collection, its nodes (all of the process, and those in the document), the gaps
 * between its frames, how long a change of the page takes, and how long after its event a pause is seen. Where the
 * document has more or fewer nodes than before, the next line names the parts that changed.
 * `--seconds=600` is the whole run.
 */
const DENIALS_A_SECOND = 5_000;
const TICK_MS = 20;
const SAMPLE_MS = 30_000;
const seconds = Number(process.argv.find((word) => word.startsWith('--seconds='))?.split('=')[1] ?? 60);

const hub = new EventHub();
const limiter = await RateLimiter.open(memory(), {
  limits: [Limit.perMinute('rpm', 60)],
  leaseSecrets: ['a-secret-of-benchmarks-that-is-long-enough'],
});
const server = await serve(limiter, { port: 0, events: hub, dashboard: readDashboard() });
const browser = await launchBrowser();
const page = await browser.newPage();
const debug = await page.context().newCDPSession(page);
await debug.send('Performance.enable');
await page.goto(`${server.url}/dashboard/`);
await page.evaluate(`(() => {
  window.gaps = [];
  let last = performance.now();
  const frame = (now) => { window.gaps.push(now - last); last = now; requestAnimationFrame(frame); };
  requestAnimationFrame(frame);
})()`);

/** Counts the nodes of each part of the overview. Evaluated in the page. */
const COUNT_NODES = `(() => {
  const count = (root) => {
    const walk = document.createTreeWalker(root);
    let nodes = 1;
    while (walk.nextNode()) nodes += 1;
    return nodes;
  };
  const parts = [...document.querySelectorAll('main section')].map((one) => [one.querySelector('h2').textContent, count(one)]);
  const figures = document.querySelector('main dl');
  return Object.fromEntries([['all', count(document)], ['figures', figures === null ? 0 : count(figures)], ...parts]);
})()`;

const startMs = performance.now();
let sent = 0;
let nodesBefore: Readonly<Record<string, number>> = {};
const flood = setInterval(() => {
  const due = Math.min(seconds * DENIALS_A_SECOND, ((performance.now() - startMs) / 1_000) * DENIALS_A_SECOND);
  for (; sent < due; sent++) hub.publish({ type: 'decision', data: denialOf(sent) });
}, TICK_MS);
console.log(
  'second  sent      shown/s  missed   heap MB  nodes  in document  listeners  frames/s  gap p95 ms  gap max ms  page change ms  pause seen ms',
);
for (let at = 1; at * SAMPLE_MS <= seconds * 1_000; at++) {
  await new Promise((resolve) => setTimeout(resolve, startMs + at * SAMPLE_MS - performance.now()));
  console.log(await sample(page, debug));
}
clearInterval(flood);
await browser.close();
await server.close();
await limiter.close();

function denialOf(at: number): object {
  const entityId = tenantOf(at);
  return {
    namespace: 'default',
    entityId,
    resource: 'gpt-4',
    consume: { rpm: 1, tpm: 500 },
    granted: false,
    reason: 'exhausted',
    retryAfterMs: 1_500,
    decidedBy: 'store',
    violations: [{ entityId, limit: 'rpm', requested: 1, available: 0, retryAfterMs: 1_500 }],
    paused: null,
    durationMs: at % 20,
  };
}

async function sample(of: Page, session: CDPSession): Promise<string> {
  const gaps = (await of.evaluate('window.gaps.splice(0)')) as number[];
  const sorted = gaps.toSorted((a, b) => a - b);
  const figure = async (label: string): Promise<string> =>
    of
      .locator('.stat', { hasText: label })
      .locator('dd')
      .first()
      .innerText({ timeout: 500 })
      .catch(() => '0');
  const [shown, missed] = [await figure('Denied / s'), await figure('Events missed')];
  const clickMs = performance.now();
  await of.getByRole('link', { name: 'Entity', exact: true }).click();
  await of.getByRole('heading', { level: 1, name: 'Entity' }).waitFor();
  const changeMs = performance.now() - clickMs;
  await of.getByRole('link', { name: 'Overview' }).click();
  const pauseMs = performance.now();
  const reason = `pause ${sent}`;
  hub.publish({
    type: 'pause',
    data: { namespace: 'default', entityId: 'paused', resource: null, until: null, reason },
  });
  await of.getByRole('region', { name: 'Paused' }).getByText(reason).waitFor();
  const seenMs = performance.now() - pauseMs;
  await of.getByText('Reading…').first().waitFor({ state: 'detached' });
  const nodes = (await of.evaluate(COUNT_NODES)) as Readonly<Record<string, number>>;
  const moved = Object.keys(nodes)
    .filter((part) => part !== 'all' && nodes[part] !== nodesBefore[part])
    .map((part) => `${part} ${nodesBefore[part] ?? 0} -> ${nodes[part]}`);
  nodesBefore = nodes;
  // The nodes of the page that was left are freed by the collection after the one that frees their JavaScript objects.
  for (let pass = 0; pass < 2; pass++) await session.send('HeapProfiler.collectGarbage');
  const { metrics } = await session.send('Performance.getMetrics');
  const metric = (name: string): number => metrics.find((one) => one.name === name)?.value ?? 0;
  const line = [
    String(Math.round((performance.now() - startMs) / 1_000)).padEnd(6),
    String(sent).padEnd(8),
    shown.padEnd(7),
    missed.padEnd(7),
    (metric('JSHeapUsedSize') / 1e6).toFixed(1).padEnd(7),
    String(metric('Nodes')).padEnd(5),
    String(nodes['all']).padEnd(11),
    String(metric('JSEventListeners')).padEnd(9),
    (gaps.length / (SAMPLE_MS / 1_000)).toFixed(1).padEnd(8),
    (sorted[Math.floor(sorted.length * 0.95)] ?? 0).toFixed(0).padEnd(10),
    (sorted.at(-1) ?? 0).toFixed(0).padEnd(10),
    changeMs.toFixed(0).padEnd(14),
    seenMs.toFixed(0),
  ].join('  ');
  return moved.length === 0 ? line : `${line}\n        nodes: ${moved.join(', ')}`;
}
