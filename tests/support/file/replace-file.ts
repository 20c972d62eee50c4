import { renameSync, rmSync } from 'node:fs';
import { loadDriver } from '../../../src/backends/embedded/file/database/driver.js';
import { file } from '../../../src/backends/embedded/file/file.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';

/** How an operator or a script replaces a file that processes have open. */
export const REPLACEMENTS = [
  'removed',
  'removed without its log',
  'renamed',
  'replaced',
  'replaced without its log',
] as const;
export type Replacement = (typeof REPLACEMENTS)[number];

const LOGS = ['-wal', '-shm'];

export async function replaceFile(path: string, how: Replacement): Promise<void> {
  const besides = how.endsWith('without its log') || how === 'renamed' ? [] : LOGS;
  if (how.startsWith('replaced')) {
    await makeFile(`${path}.new`);
    for (const suffix of besides) rmSync(path + suffix, { force: true });
    renameSync(`${path}.new`, path);
    return;
  }
  for (const suffix of besides) rmSync(path + suffix, { force: true });
  if (how === 'renamed') renameSync(path, `${path}.old`);
  else rmSync(path, { force: true });
}

/** Creates a file without a log that no connection of this process has open. */
async function makeFile(path: string): Promise<void> {
  const limiter = await RateLimiter.open(file({ path: `${path}.template` }));
  await limiter.entities.create({ id: 'maker' });
  await limiter.close();
  const database = (await loadDriver()).open(`${path}.template`);
  database.exec(`VACUUM INTO '${path}'`);
  database.close();
  for (const suffix of ['', ...LOGS]) rmSync(`${path}.template${suffix}`, { force: true });
}
