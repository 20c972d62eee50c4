import { loadDriver, type SqlValue } from '../../../src/backends/embedded/file/database/driver.js';

export type Row = Readonly<Record<string, SqlValue>>;

/** Every row of every table of a file, in the order of its key. Of our code, only the driver is used. */
export async function readAllRows(path: string): Promise<Record<string, Row[]>> {
  const database = (await loadDriver()).open(path);
  try {
    const tables = database.prepare(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`).all();
    return Object.fromEntries(
      tables.map(([table]) => {
        const columns = database.prepare(`SELECT name FROM pragma_table_info('${table}')`).all().flat();
        const rows = database.prepare(`SELECT * FROM ${table} ORDER BY 1, 2`).all();
        return [
          String(table),
          rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at] ?? null]))),
        ];
      }),
    );
  } finally {
    database.close();
  }
}

/** The rows of one namespace, including its row in the registry. */
export async function readRowsOf(path: string, namespaceId: string): Promise<Record<string, Row[]>> {
  const tables = Object.entries(await readAllRows(path));
  return Object.fromEntries(
    tables.map(([table, rows]) => [table, rows.filter(({ ns, id }) => (ns ?? id) === namespaceId)]),
  );
}

export async function checkIntegrity(path: string): Promise<SqlValue> {
  const database = (await loadDriver()).open(path);
  try {
    return database.prepare('PRAGMA integrity_check').get()?.[0] ?? null;
  } finally {
    database.close();
  }
}
