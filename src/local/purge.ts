import { closeSync, openSync, readdirSync, readSync, rmdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { LocalState } from './state.js';

/** The database, and the files that SQLite keeps beside it. */
const SUFFIXES = ['', '-wal', '-shm', '-journal'];
const MAGIC = 'SQLite format 3\0';
const SHARED_DATABASE = 'shared-local-instance.db';

/** Removes the files of an engine that has ended. It removes no other file, because `--data` may name any place. */
export function purgeData({ engine, data }: Pick<LocalState, 'engine' | 'data'>): void {
  const database = engine === 'dynoxide' ? data : join(data, SHARED_DATABASE);
  if (isDatabase(database)) for (const suffix of SUFFIXES) rmSync(`${database}${suffix}`, { force: true });
  if (engine === 'dynamodb-local' && isEmpty(data)) rmdirSync(data);
}

/** `--data` may have named a file that is no database, which made the engine fail to start. */
function isDatabase(path: string): boolean {
  try {
    const start = Buffer.alloc(MAGIC.length);
    const file = openSync(path, 'r');
    readSync(file, start);
    closeSync(file);
    return start.toString('latin1') === MAGIC;
  } catch {
    return false;
  }
}

function isEmpty(folder: string): boolean {
  try {
    return readdirSync(folder).length === 0;
  } catch {
    return false;
  }
}
