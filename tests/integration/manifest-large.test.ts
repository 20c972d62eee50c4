import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { file } from '../../src/backends/embedded/file/file.js';
import { printManifest } from '../../src/cli/limits/print-manifest.js';
import type { LimitsPlanShape } from '../../src/cli/commands/manage/limits-shapes.js';
import type { ManifestData } from '../../src/core/manifest/manifest.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { runCli } from '../support/cli/run-cli.js';

const ENTITIES = 5_000;

const folder = mkdtempSync(join(tmpdir(), 'headgate-large-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Entities in a tree of four levels, each with a default and limits of a resource: three objects per entity. */
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

test(`${ENTITIES} entities are planned and applied on a file store, by the library and by the command`, async () => {
  const path = join(folder, 'limits.db');
  const manifest = largeManifest();
  await using limiter = await RateLimiter.open(file({ path }));
  expect((await limiter.manifest.plan(manifest)).changes).toHaveLength(3 * ENTITIES + 1);
  await limiter.manifest.apply(manifest);
  const again = await limiter.manifest.plan(manifest);
  expect(again).toEqual({ changes: [], drift: [], unchanged: 3 * ENTITIES + 1 });
  expect((await limiter.manifest.plan({ namespace: 'default' })).changes).toHaveLength(3 * ENTITIES + 1);

  const text = join(folder, 'limits.yaml');
  writeFileSync(text, printManifest(manifest));
  const { stdout } = await runCli(['limits', 'plan', '-f', text, '--store', `file:${path}`, '--json']);
  expect(JSON.parse(stdout) as LimitsPlanShape).toEqual(again);
});
