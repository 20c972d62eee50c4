import {
  loadDriver,
  type SqliteDatabase,
  type SqliteDriver,
} from '../../../src/backends/embedded/file/database/driver.js';

/** SQLite that calls `onStatement` before each statement, with its text on one line. The callback may throw. */
export async function loadWatchedDriver(onStatement: (sql: string) => void): Promise<SqliteDriver> {
  const real = await loadDriver();
  return { open: (path) => watched(real.open(path), (sql) => onStatement(sql.replaceAll(/\s+/g, ' '))) };
}

function watched(database: SqliteDatabase, onStatement: (sql: string) => void): SqliteDatabase {
  return {
    close: () => database.close(),
    leave: () => database.leave(),
    exec: (sql) => {
      onStatement(sql);
      database.exec(sql);
    },
    prepare: (sql) => {
      const { run, get, all } = database.prepare(sql);
      const watch =
        <V extends readonly unknown[], R>(work: (...values: V) => R) =>
        (...values: V): R => {
          onStatement(sql);
          return work(...values);
        };
      return { run: watch(run), get: watch(get), all: watch(all) };
    },
  };
}
