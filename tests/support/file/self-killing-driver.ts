import {
  loadDriver,
  type SqliteDatabase,
  type SqliteDriver,
} from '../../../src/backends/embedded/file/database/driver.js';

/** SQLite for a process that kills itself right before its n-th statement. */
export async function loadSelfKillingDriver(killBefore: number): Promise<SqliteDriver> {
  let statements = 0;
  const countStatement = (): void => {
    statements += 1;
    if (statements === killBefore) process.kill(process.pid, 'SIGKILL');
  };
  const real = await loadDriver();
  return { open: (path) => counting(real.open(path), countStatement) };
}

function counting(database: SqliteDatabase, countStatement: () => void): SqliteDatabase {
  return {
    close: () => database.close(),
    leave: () => database.leave(),
    exec: (sql) => {
      for (const statement of sql.split(';').filter((text) => text.trim() !== '')) {
        countStatement();
        database.exec(statement);
      }
    },
    prepare: (sql) => {
      const prepared = database.prepare(sql);
      return {
        run: (...values) => {
          countStatement();
          return prepared.run(...values);
        },
        get: (...values) => {
          countStatement();
          return prepared.get(...values);
        },
        all: (...values) => {
          countStatement();
          return prepared.all(...values);
        },
      };
    },
  };
}
