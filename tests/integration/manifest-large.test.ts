import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { file } from '../../src/backends/embedded/file/file.js';
import { printManifest } from '../../src/cli/print-manifest.js';
import type { LimitsPlanShape } from '../../src/cli/shapes.js';
import type { ManifestData } from '../../src/core/manifest/manifest.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { runCli } from '../support/run-cli.js';

const ENTITIES = 5_000;
const MAX_MS = 10_000;

const folder = mkdtempSync(join(tmpdir(), 'headgate-large-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Entities in a tree of four levels, each with a default and the limits of a resource: three objects for each. */
function largeManifest(): ManifestData {
  const entities = Array.from({ length: ENTITIES }, (_, at) => {
    const parent = at < 10 ? {} : { parent: `user-${Math.floor(at / 10)}`, cascade: true };
    const limits = {
      default: { limits: [`rpm:${at + 1}/min`, 'tpm:10000/min:50000'] },
      resources: { 'gpt-4': { limits: ['rpm:600/min', 'slots:4/concurrent'] } },
    };
    return [`user-${at}`, { name: `User ${at}`, metadata: { tier: 'gold' }, ...parent, ...limits }] as const;
  });
  return { namespace: 'default', system: { limits: ['rpm:100/min'] }, entities: Object.fromEntries(entities) };
}

async function timed<T>(work: () => Promise<T>): Promise<{ readonly result: T; readonly tookMs: number }> {
  const startMs = performance.now();
  const result = await work();
  return { result, tookMs: performance.now() - startMs };
}

test(
  `${ENTITIES} entities are planned on a file store in less than 10 s, by the library and by the command`,
  {
    timeout: 180_000,
  },
  async () => {
    const path = join(folder, 'limits.db');
    const manifest = largeManifest();
    await using limiter = await RateLimiter.open(file({ path }));
    const first = await timed(() => limiter.manifest.plan(manifest));
    const applied = await timed(() => limiter.manifest.apply(manifest));
    const second = await timed(() => limiter.manifest.plan(manifest));
    const cleared = await timed(() => limiter.manifest.plan({ namespace: 'default' }));
    expect(first.result.changes).toHaveLength(3 * ENTITIES + 1);
    expect(second.result).toEqual({ changes: [], drift: [], unchanged: 3 * ENTITIES + 1 });
    expect(cleared.result.changes).toHaveLength(3 * ENTITIES + 1);

    const text = join(folder, 'limits.yaml');
    writeFileSync(text, printManifest(manifest));
    const command = await timed(() => runCli(['limits', 'plan', '-f', text, '--store', `file:${path}`, '--json']));
    expect(JSON.parse(command.result.stdout) as LimitsPlanShape).toEqual(second.result);

    const plans = {
      'of an empty store': first,
      'of the same': second,
      'of nothing': cleared,
      'by the command': command,
    };
    for (const [, { tookMs }] of Object.entries(plans)) expect(tookMs).toBeLessThan(MAX_MS);
    const shown = Object.entries(plans).map(([what, { tookMs }]) => `${what} ${tookMs.toFixed(0)} ms`);
    console.log(
      `${ENTITIES} entities, ${3 * ENTITIES + 1} objects: plan ${shown.join(', ')}; applied in ${applied.tookMs.toFixed(0)} ms`,
    );
  },
);
