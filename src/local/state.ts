import { randomUUID } from 'node:crypto';
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { InfrastructureError } from '../core/errors.js';
import { reasonOf } from '../core/reason-of.js';

export const LOCAL_ENGINES = ['dynoxide', 'dynamodb-local'] as const;

export type LocalEngine = (typeof LOCAL_ENGINES)[number];

/** The stored state of the engine on this machine. It stays after the engine was stopped. */
export interface LocalState {
  readonly engine: LocalEngine;
  readonly port: number;
  /** The file or, for DynamoDB Local, the folder that has the table. */
  readonly data: string;
  /** The arguments of the engine's process, by which it is recognised. */
  readonly args: readonly string[];
  /** null: the engine was stopped, or the command that started it was killed before it stored the id. */
  readonly pid: number | null;
  /** The command that started the engine has not stored its process id yet. */
  readonly isStarting?: true;
  readonly startedAt: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** The user's folder for the files of `headgate local`. Absolute, because it is the engine's working directory. */
export function localFolder(env: Environment): string {
  if (env['HEADGATE_LOCAL_DIR']) return resolve(env['HEADGATE_LOCAL_DIR']);
  if (process.platform === 'win32' && env['LOCALAPPDATA']) return join(env['LOCALAPPDATA'], 'headgate');
  return resolve(env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state'), 'headgate');
}

const stateFile = (folder: string): string => join(folder, 'local.json');

/** null: no engine was ever started. */
export function readLocalState(folder: string): LocalState | null {
  const path = stateFile(folder);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    if (isMissing(cause)) return null;
    throw unreadable(path, cause);
  }
  try {
    return parseState(text);
  } catch (cause) {
    throw unreadable(path, cause);
  }
}

function parseState(text: string): LocalState {
  const state = JSON.parse(text) as LocalState;
  const isValid =
    LOCAL_ENGINES.includes(state.engine) &&
    Number.isInteger(state.port) &&
    (state.pid === null || Number.isInteger(state.pid)) &&
    Array.isArray(state.args) &&
    state.args.length > 0 &&
    [state.data, state.startedAt, ...(state.args as unknown[])].every((value) => typeof value === 'string');
  if (!isValid) throw new TypeError('a field is missing or has the wrong type');
  return state;
}

export function writeLocalState(folder: string, state: LocalState): void {
  replaceFile(stateFile(folder), `${JSON.stringify(state, null, 2)}\n`);
}

export function removeLocalState(folder: string): void {
  rmSync(stateFile(folder), { force: true });
}

/** Replaces the file by a rename: a concurrent reader, and a reader after a crash, sees the whole old or the whole new file. */
export function replaceFile(path: string, text: string): void {
  const draft = `${path}.${randomUUID()}.tmp`;
  try {
    writeFileSync(draft, text, { flag: 'wx', mode: 0o600 });
    renameSync(draft, path);
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new InfrastructureError('infrastructure.file', `Cannot write ${path}: ${reason}`, { cause });
  } finally {
    removeFile(draft);
  }
}

/** Also if there is no such file, or no such folder. */
export function removeFile(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOTDIR') throw error;
  }
}

export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}

function unreadable(path: string, cause: unknown): InfrastructureError {
  const reason = reasonOf(cause);
  return new InfrastructureError('infrastructure.local-state', `${path} cannot be read (${reason}): remove it`, {
    cause,
  });
}
