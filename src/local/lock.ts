import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { InfrastructureError } from '../core/errors.js';
import { listProcesses } from './processes.js';
import { isMissing, replaceFile } from './state.js';

const SUFFIX = '.lock';
const PATIENCE_MS = 60_000;
const BETWEEN_TRIES_MS = 50;

/** Files that this process has made. */
const announced = new Set<string>();

/**
 * Runs `work` while no other process that shares the folder does. Each announces itself by a file of its own and then looks
 * for others: of two, at least one sees the other and steps back. A file whose process is dead counts for nothing, so that
 * kill -9 leaves no lock behind.
 */
export async function underLock<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const own = `${process.pid}.${randomUUID()}${SUFFIX}`;
  announced.add(own);
  const ownLine = listProcesses().get(process.pid) ?? '';
  const untilMs = performance.now() + PATIENCE_MS;
  try {
    for (;;) {
      replaceFile(join(folder, own), ownLine);
      const [other] = livingOthers(folder, own);
      if (other === undefined) return await work();
      rmSync(join(folder, own), { force: true });
      if (performance.now() > untilMs) {
        const message = `Another \`headgate local\` is at work (process ${other}), and does not come to an end`;
        throw new InfrastructureError('infrastructure.local-busy', message);
      }
      await delay(BETWEEN_TRIES_MS * (1 + Math.random()));
    }
  } finally {
    rmSync(join(folder, own), { force: true });
  }
}

/** The ids of the processes that have announced themselves and live; the files of the others are removed. */
function livingOthers(folder: string, own: string): readonly number[] {
  const others = readdirSync(folder).filter((name) => name.endsWith(SUFFIX) && name !== own);
  if (others.length === 0) return [];
  const processes = listProcesses();
  return others.flatMap((name) => {
    const line = readLine(join(folder, name));
    if (line === null) return [];
    // One with this very id that this process did not make is of an earlier life of the machine, or of a container.
    const isStale = pidOf(name) === process.pid && !announced.has(name);
    if (!isStale && processes.get(pidOf(name)) === line) return [pidOf(name)];
    rmSync(join(folder, name), { force: true });
    return [];
  });
}

function pidOf(name: string): number {
  return Number(name.split('.')[0]);
}

/** null: it is gone. */
function readLine(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return null;
    throw error;
  }
}
