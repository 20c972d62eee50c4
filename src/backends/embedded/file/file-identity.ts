import { rmSync, statSync } from 'node:fs';

/** Which files an open store consists of, whatever their paths lead to by now: device and inode, '' for none. */
export interface FileIdentity {
  readonly file: string;
  readonly log: string;
  readonly index: string;
}

const LOG = '-wal';
const INDEX = '-shm';

/**
 * What the path leads to. An inode is not given to another file while a process has it open, so that a different one is
 * another file. Never opens the file: to close it again would drop the locks that SQLite has on it in this process.
 */
export function identify(path: string): FileIdentity {
  return { file: inodeOf(path), log: inodeOf(path + LOG), index: inodeOf(path + INDEX) };
}

export function isSameStore(a: FileIdentity, b: FileIdentity): boolean {
  return a.file === b.file && a.log === b.log && a.index === b.index;
}

/** SQLite makes both, or neither where the file system has no shared memory. */
export function isWithoutIndex({ log, index }: FileIdentity): boolean {
  return log !== '' && index === '';
}

/**
 * Removes the log and the index that a file left behind when another one took its path: SQLite finds them by their names,
 * and would apply them to the new file.
 */
export function removeOrphans(path: string, left: FileIdentity): void {
  const found = identify(path);
  if (found.file === left.file) return;
  if (found.log !== '' && found.log === left.log) rmSync(path + LOG, { force: true });
  if (found.index !== '' && found.index === left.index) rmSync(path + INDEX, { force: true });
}

function inodeOf(path: string): string {
  // Windows has no inodes; it does not let an open file be removed or replaced either.
  if (process.platform === 'win32') return '';
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    return found === undefined ? '' : `${found.dev}:${found.ino}`;
  } catch {
    // A folder that may not be looked into any more: no process can open the file.
    return '';
  }
}
