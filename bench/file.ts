import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Limit, RateLimiter } from 'headgate';
import Database from 'libsql';
import { RateLimiterSQLite } from 'rate-limiter-flexible';
import { type Contender, race } from './race.js';
import type { Row } from './table.js';

const PLENTY = 10_000_000;
const OPERATIONS = 3_000;
const GOALS = { normal: 1.5, full: 1.2 } as const;

/** The file store against RateLimiterSQLite: files in the same folder, both in WAL mode with the same durability. */
export async function fileRows(keys: readonly string[]): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'));
  try {
    const rows: Row[] = [];
    for (const synchronous of ['normal', 'full'] as const) {
      const ours = await headgateFile(join(folder, `ours-${synchronous}.db`), synchronous);
      const theirs = await flexibleFile(join(folder, `theirs-${synchronous}.db`), synchronous);
      rows.push({
        name: `file, synchronous=${synchronous}, 1 limit / SQLite`,
        unit: 'ns/op',
        goal: GOALS[synchronous],
        ...(await race(keys, ours.contender, theirs.contender, OPERATIONS)),
      });
      await ours.close();
      theirs.close();
    }
    return rows;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function headgateFile(
  path: string,
  synchronous: string,
): Promise<{ contender: Contender; close: () => Promise<void> }> {
  const limiter = await RateLimiter.open(`file:${path}?synchronous=${synchronous}`, {
    limits: [Limit.perMinute('rpm', PLENTY)],
  });
  return {
    contender: async (key) => {
      const lease = await limiter.acquire({ entityId: key, resource: 'gpt-4', consume: { rpm: 1 } });
      await lease.commit();
    },
    close: () => limiter.close(),
  };
}

async function flexibleFile(path: string, synchronous: string): Promise<{ contender: Contender; close: () => void }> {
  const storeClient = new Database(path);
  storeClient.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`);
  const limiter = await new Promise<RateLimiterSQLite>((resolve, reject) => {
    const made = new RateLimiterSQLite(
      { storeClient, storeType: 'better-sqlite3', tableName: 'limits', points: PLENTY, duration: 60 },
      (error) => (error === undefined ? resolve(made) : reject(error)),
    );
  });
  return {
    contender: async (key) => {
      await limiter.consume(key, 1);
    },
    close: () => storeClient.close(),
  };
}
