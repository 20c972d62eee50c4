import { rmSync, statSync } from 'node:fs';

/** The files of an open store, whatever their paths lead to now: device and inode, '' for none. */
export interface FileIdentity {
  readonly file: string;
  readonly log: string;
  readonly index: string;
}

const LOG = '-wal';
const INDEX = '-shm';

/**
 * The files that the path leads to. An inode is not reused while a process has it open, so a different inode is another
 * file. Never opens the file: closing it again would drop SQLite's locks on it in this process.
 */
export function identify(path: string): FileIdentity {
  return { file: inodeOf(path), log: inodeOf(path + LOG), index: inodeOf(path + INDEX) };
}

export function isSameStore(a: FileIdentity, b: FileIdentity): boolean {
  return a.file === b.file && a.log === b.log && a.index === b.index;
}

/** Whether the path of the log still leads to the log of the open store: a third of the work of `identify`. */
export function hasSameLog(path: string, { log }: FileIdentity): boolean {
  return inodeOf(path + LOG) === log;
}

/** SQLite creates both, or neither if the file system has no shared memory. */
export function isWithoutIndex({ log, index }: FileIdentity): boolean {
  return log !== '' && index === '';
}

/**
 * Removes the log and the index of a file that was replaced: SQLite finds them by name, and would apply them to the new
 * file.
 */
export function removeOrphans(path: string, left: FileIdentity): void {
  const found = identify(path);
  if (found.file === left.file) return;
  if (found.log !== '' && found.log === left.log) rmSync(path + LOG, { force: true });
  if (found.index !== '' && found.index === left.index) rmSync(path + INDEX, { force: true });
}

function inodeOf(path: string): string {
  // Windows has no inodes. It does not allow an open file to be removed or replaced either.
  if (process.platform === 'win32') return '';
  try {
    const found = statSync(path, { bigint: true, throwIfNoEntry: false });
    return found === undefined ? '' : `${found.dev}:${found.ino}`;
  } catch {
    // The folder is no longer accessible, so no process can open the file.
    return '';
  }
}
