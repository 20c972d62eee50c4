/** A process that makes administrative changes, and dies by its own hand right before the statement that it is told. */
import { loadDriver, type SqliteDatabase, type SqliteDriver } from '../../src/backends/embedded/file/driver.js';
import { runSteps } from './audit-script.js';

const [path = '', deadly = ''] = process.argv.slice(2);
let statements = 0;

function countStatement(): void {
  statements += 1;
  if (statements === Number(deadly)) process.kill(process.pid, 'SIGKILL');
}

function counting(database: SqliteDatabase): SqliteDatabase {
  return {
    close: () => database.close(),
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

const real = await loadDriver();
const driver: SqliteDriver = { open: (opened) => counting(real.open(opened)) };
await runSteps(path, 0, driver);
process.disconnect();
