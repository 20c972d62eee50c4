import { AccessDenied, BackendUnavailable, InfrastructureError } from '../../../../core/errors.js';
import { collectGarbageSoon } from './collect-garbage.js';

export type SqlValue = string | number | null;

export interface SqliteStatement {
  /** Returns how many rows changed. */
  run(...values: SqlValue[]): number;
  /** The first row, as a list of its columns. */
  get(...values: SqlValue[]): readonly SqlValue[] | undefined;
  all(...values: SqlValue[]): readonly (readonly SqlValue[])[];
}

export interface SqliteDatabase {
  exec(sql: string): void;
  prepare(sql: string): SqliteStatement;
  /** With libsql, the files stay open, and locked for others, until the statements are collected as garbage. */
  close(): void;
  /** Closes, and makes sure that the files are soon no longer open, if the caller keeps no statement. */
  leave(): void;
}

/** The part of SQLite that the file store needs, over the library that this Node has. All calls are synchronous. */
export interface SqliteDriver {
  open(path: string): SqliteDatabase;
}

/** `node:sqlite` if Node has it, otherwise the optional peer libsql. */
export async function loadDriver(): Promise<SqliteDriver> {
  return (await loadNodeSqlite()) ?? (await loadLibsql());
}

/** The part of `node:sqlite` that is used. The types are of Node 20, which does not have it. */
interface NodeSqlite {
  readonly DatabaseSync: new (path: string) => NodeDatabase;
}

interface NodeDatabase {
  exec(sql: string): void;
  prepare(sql: string): {
    run(...values: SqlValue[]): { readonly changes: number | bigint };
    get(...values: SqlValue[]): Record<string, SqlValue> | undefined;
    all(...values: SqlValue[]): readonly Record<string, SqlValue>[];
  };
  close(): void;
}

async function loadNodeSqlite(): Promise<SqliteDriver | null> {
  const { getBuiltinModule } = process as { getBuiltinModule?: (id: string) => unknown };
  const sqlite = withoutExperimentalWarning(() => getBuiltinModule?.('node:sqlite')) as NodeSqlite | undefined;
  if (sqlite === undefined) return null;
  return { open: (path) => wrapNodeSqlite(new sqlite.DatabaseSync(path)) };
}

/**
 * Node 22 and 24 warn once per process that SQLite is experimental. The warning does not help a user of the limiter.
 */
function withoutExperimentalWarning<T>(work: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return work();
  } finally {
    process.emitWarning = emitWarning;
  }
}

function wrapNodeSqlite(database: NodeDatabase): SqliteDatabase {
  return {
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
    leave: () => database.close(),
    prepare: (sql) => {
      const statement = database.prepare(sql);
      return {
        run: (...values) => Number(statement.run(...values).changes),
        get: (...values) => {
          const row = statement.get(...values);
          return row === undefined ? undefined : Object.values(row);
        },
        all: (...values) => statement.all(...values).map((row) => Object.values(row)),
      };
    },
  };
}

interface LibsqlStatement {
  run(...values: SqlValue[]): { readonly changes: number };
  raw(on: boolean): LibsqlStatement;
  get(...values: SqlValue[]): readonly SqlValue[] | undefined;
  all(...values: SqlValue[]): readonly (readonly SqlValue[])[];
  readonly reader: boolean;
}

type Libsql = new (path: string) => { exec(sql: string): void; prepare(sql: string): LibsqlStatement; close(): void };

async function loadLibsql(): Promise<SqliteDriver> {
  let Database: Libsql;
  try {
    ({ default: Database } = (await importPeer('libsql')) as { default: Libsql });
  } catch (cause) {
    throw new InfrastructureError(
      'infrastructure.missing-peer',
      `The file store needs SQLite: Node ${process.versions.node} does not include it. Run: npm install libsql@0.5.29 (or use Node 22.13 and later)`,
      { cause },
    );
  }
  return { open: (path) => wrapLibsql(new Database(path)) };
}

/** Hidden from bundlers: an app that never opens a file must bundle without the peer. */
function importPeer(name: string): Promise<unknown> {
  return import(/* webpackIgnore: true */ /* turbopackIgnore: true */ name);
}

function wrapLibsql(database: InstanceType<Libsql>): SqliteDatabase {
  return {
    exec: (sql) => database.exec(sql),
    close: () => database.close(),
    leave: () => {
      database.close();
      // libsql cannot finalize a statement. SQLite closes a database after its last statement.
      collectGarbageSoon();
    },
    prepare: (sql) => {
      // Rows as lists: as objects, libsql adds an extra column to the result of `get`.
      const statement = database.prepare(sql);
      if (statement.reader) statement.raw(true);
      return {
        run: (...values) => statement.run(...values).changes,
        get: (...values) => statement.get(...values) ?? undefined,
        all: (...values) => statement.all(...values),
      };
    },
  };
}

/** SQLite's result codes, as `node:sqlite` numbers and as libsql names. https://sqlite.org/rescode.html */
type ResultCode = readonly [number: number, name: string];

const BUSY: ResultCode = [5, 'SQLITE_BUSY'];
const NOT_A_DATABASE: ResultCode = [26, 'SQLITE_NOTADB'];
const DENIED: readonly ResultCode[] = [
  [3, 'SQLITE_PERM'],
  [8, 'SQLITE_READONLY'],
];
const OUT: readonly ResultCode[] = [
  [7, 'SQLITE_NOMEM'],
  [10, 'SQLITE_IOERR'],
  [13, 'SQLITE_FULL'],
];

/** Another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  return hasCode(error, BUSY);
}

/** The file is not a SQLite database. */
export function isNotADatabase(error: unknown): boolean {
  return hasCode(error, NOT_A_DATABASE);
}

/**
 * Maps a SQLite failure to an error of the port. A busy lock, which is retried, and all other errors stay as they are.
 */
export function fileErrorOf(error: unknown, path: string): unknown {
  if (!isSqliteError(error) || isBusy(error)) return error;
  const message = `${path}: ${error.message}`;
  const among = (codes: readonly ResultCode[]): boolean => codes.some((code) => hasCode(error, code));
  if (among(DENIED)) return new AccessDenied(message, { cause: error });
  if (among(OUT)) return new BackendUnavailable(message, 'server', { cause: error });
  return new InfrastructureError('infrastructure.file', message, { cause: error });
}

interface SqliteError extends Error {
  readonly code?: unknown;
  readonly errcode?: unknown;
}

function isSqliteError(error: unknown): error is SqliteError {
  if (!(error instanceof Error)) return false;
  const { code } = error as SqliteError;
  return typeof code === 'string' && /^(?:ERR_)?SQLITE_/.test(code);
}

/**
 * `node:sqlite` has numbers, with extended codes in the upper bytes; libsql has names, with a suffix for extended
 * codes.
 */
function hasCode(error: unknown, [number, name]: ResultCode): boolean {
  if (!isSqliteError(error)) return false;
  const { errcode, code } = error;
  if (typeof errcode === 'number') return (errcode & 0xff) === number;
  return typeof code === 'string' && (code === name || code.startsWith(`${name}_`));
}
