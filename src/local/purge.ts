import { readdirSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { LocalState } from './state.js';

/** What SQLite keeps beside a database. */
const BESIDE = ['', '-wal', '-shm', '-journal'];
const SHARED_DATABASE = 'shared-local-instance.db';

/** Removes the files of an engine that has ended, and nothing that is not its own: the user may have named any place. */
export function purgeData({ engine, data }: Pick<LocalState, 'engine' | 'data'>): void {
  const database = engine === 'dynoxide' ? data : join(data, SHARED_DATABASE);
  for (const suffix of BESIDE) rmSync(`${database}${suffix}`, { force: true });
  if (engine === 'dynamodb-local' && isEmpty(data)) rmdirSync(data);
}

function isEmpty(folder: string): boolean {
  try {
    return readdirSync(folder).length === 0;
  } catch {
    return false;
  }
}
