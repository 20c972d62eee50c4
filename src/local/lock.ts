import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { InfrastructureError } from '../core/errors.js';
import { listProcesses } from './processes.js';
import { isMissing, removeFile, replaceFile } from './state.js';

const SUFFIX = '.lock';
const TIMEOUT_MS = 60_000;
const BETWEEN_TRIES_MS = 50;

/** The lock files that this process has written. */
const announced = new Set<string>();

/**
 * Runs `work` while no other process that shares the folder does. Each process first writes its own lock file and then
 * looks for others: of two processes, at least one sees the other, removes its file and retries. The file of a process
 * that has ended is ignored, so that kill -9 leaves no lock behind.
 */
export async function underLock<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const own = `${process.pid}.${randomUUID()}${SUFFIX}`;
  announced.add(own);
  const ownLine = listProcesses().get(process.pid) ?? '';
  const untilMs = performance.now() + TIMEOUT_MS;
  try {
    for (;;) {
      replaceFile(join(folder, own), ownLine);
      const [other] = runningOthers(folder, own);
      if (other === undefined) return await work();
      removeFile(join(folder, own));
      if (performance.now() > untilMs) {
        const message = `Another \`headgate local\` (process ${other}) has not finished within ${TIMEOUT_MS / 1_000} s`;
        throw new InfrastructureError('infrastructure.local-busy', message);
      }
      await delay(BETWEEN_TRIES_MS * (1 + Math.random()));
    }
  } finally {
    removeFile(join(folder, own));
  }
}

/** The ids of the other running processes that have a lock file. Removes the files of processes that have ended. */
function runningOthers(folder: string, own: string): readonly number[] {
  const others = readdirSync(folder).filter((name) => name.endsWith(SUFFIX) && name !== own);
  if (others.length === 0) return [];
  const processes = listProcesses();
  return others.flatMap((name) => {
    const line = readLine(join(folder, name));
    if (line === null) return [];
    // A file with this process's id that this process did not write is from before a restart of the machine or container.
    const isStale = pidOf(name) === process.pid && !announced.has(name);
    if (!isStale && processes.get(pidOf(name)) === line) return [pidOf(name)];
    removeFile(join(folder, name));
    return [];
  });
}

function pidOf(name: string): number {
  return Number(name.split('.')[0]);
}

/** null: the file does not exist any more. */
function readLine(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
