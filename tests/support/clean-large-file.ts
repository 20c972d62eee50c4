import { loadDriver } from '../../src/backends/embedded/file/database/driver.js';
import { Maintenance } from '../../src/backends/embedded/file/maintenance.js';
import { createStatements } from '../../src/backends/embedded/file/database/statements.js';
import type { EpochMs } from '../../src/core/units.js';

/** One round of cleaning in a file of so many buckets that idle ones are removed, by a process of its own. */
export async function cleanLargeFile(path: string, nowMs: EpochMs): Promise<void> {
  const database = (await loadDriver()).open(path);
  database.exec(`BEGIN IMMEDIATE;
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 10000)
    INSERT OR REPLACE INTO buckets (ns, entity, resource, plain, state)
      SELECT namespaces.id, 'z' || i, 'r', 'r', '{"t":[0,0],"v":[0,0],"n":[0,0,0,0],"l":[]}' FROM namespaces, n`);
  new Maintenance(createStatements(database)).clean(nowMs);
  database.exec('COMMIT');
  database.close();
}
