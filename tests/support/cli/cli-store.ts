import { cpSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Limit } from '../../../src/core/limit.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';

/** A folder with a file store that has data for every command. */
export interface CliStore {
  readonly folder: string;
  /** The address of a new copy of the file. */
  copy(): string;
  remove(): void;
}

export async function createCliStore(): Promise<CliStore> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-cli-'));
  const original = join(folder, 'original.db');
  const limiter = await RateLimiter.open(`file:${original}`, { principal: 'alice', caller: 'worker-7' });
  await fill(limiter);
  await limiter.close({ leases: 'keep' });
  let copies = 0;
  return {
    folder,
    copy() {
      copies += 1;
      const path = join(folder, `copy-${copies}.db`);
      // The log beside the file may have the last writes.
      for (const part of ['', '-wal']) if (existsSync(original + part)) cpSync(original + part, path + part);
      return `file:${path}`;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

async function fill(limiter: RateLimiter): Promise<void> {
  await limiter.config.setSystem({ limits: [Limit.perMinute('rpm', 100)], onUnavailable: 'local' });
  await limiter.config.setResource('gpt-4', { limits: [Limit.perDay('rpm', 60), Limit.concurrent('slots', 4)] });
  await limiter.entities.create({ id: 'proj-1', name: 'Production' });
  await limiter.entities.create({ id: 'user-1', parentId: 'proj-1', cascade: true, metadata: { tier: 'gold' } });
  await limiter.entities.create({ id: 'user-2', name: '\u001B[2Jsly' });
  await limiter.config.setEntityDefault('user-2', { limits: [Limit.perDay('rpm', 7)] });
  const own = [Limit.perDay('rpm', 10), Limit.perDay('tpm', 1_000), Limit.concurrent('slots', 2)];
  await limiter.config.setEntity('user-1', 'gpt-4', { limits: own });
  const ask = { entityId: 'user-1', resource: 'gpt-4' };
  await (await limiter.acquire({ ...ask, consume: { rpm: 2, tpm: 300 } })).commit();
  await limiter.acquire({ ...ask, consume: { slots: 1 }, leaseTtlMs: 3_600_000 });
  await limiter.namespaces.register('acme');
  await limiter.namespaces.register('old');
  await limiter.namespaces.delete('old');
}
