import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createTableThrough } from '../backends/dynamodb/schema/create-table.js';
import { InfrastructureError, ValidationError } from '../core/errors.js';
import { reasonOf } from '../core/reason-of.js';
import { answers } from './engine/engine-answers.js';
import { freePort } from './engine/free-port.js';
import { defaultData, endpointOf, findLocalEngine, logFile, startDetached } from './start-detached.js';
import { underLock } from './lock.js';
import { hasArguments } from './process-list.js';
import { listProcesses } from './processes.js';
import { purgeData } from './purge.js';
import { type LocalEngine, type LocalState, readLocalState, removeLocalState, writeLocalState } from './state.js';

const TABLE_NAME = 'headgate-local';
/** The usual port of DynamoDB Local. */
const FIRST_PORT = 8_000;

const ANSWER_MS = 10_000;
const STATUS_MS = 2_000;
const STOP_MS = 5_000;
const RELEASE_MS = 1_000;
const EXEC_MS = 1_000;
const LOOK_EVERY_MS = 20;

/** A running engine on this machine. */
export interface RunningEngine {
  readonly engine: LocalEngine;
  readonly pid: number;
  readonly port: number;
  readonly data: string;
  readonly log: string;
  readonly startedAt: string;
  /** The address of its table, for HEADGATE_URL. */
  readonly url: string;
}

export interface UpOptions {
  /** The folder of the state file. */
  readonly folder: string;
  /** The folder in which engine packages are searched, and to which paths are relative. */
  readonly cwd: string;
  readonly port?: number;
  readonly data?: string;
}

/** Starts the engine unless it runs, and creates its table unless it exists. */
export async function startLocal(options: UpOptions): Promise<RunningEngine & { readonly started: boolean }> {
  const { folder } = options;
  makeFolder(folder);
  const up = await underLock(folder, async () => {
    const state = readLocalState(folder);
    const pid = state === null ? null : await findEngine(state);
    if (state === null || pid === null) return { started: true, ...(await start(options, state)) };
    refuseOther(options, state);
    const { isStarting: _, ...known } = state;
    writeLocalState(folder, { ...known, pid });
    await untilItAnswers(state, pid);
    return { started: false, ...running(folder, state, pid) };
  });
  await createTableThrough({ tableName: TABLE_NAME, endpoint: endpointOf(up) });
  return up;
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new InfrastructureError('infrastructure.file', `Cannot make a folder for the state: ${reason}`, { cause });
  }
}

async function start({ folder, cwd, port, data }: UpOptions, before: LocalState | null): Promise<RunningEngine> {
  const found = findLocalEngine(cwd);
  const place = data === undefined ? defaultData(folder, found.engine) : resolve(cwd, data);
  // The last port comes first, so that an exported HEADGATE_URL stays valid.
  const ports = port === undefined ? [before?.port ?? FIRST_PORT, await freePort()] : [port];
  for (const candidate of ports) {
    const state = await startDetached({ ...found, folder, port: candidate, data: place, before });
    if (state?.pid != null) return running(folder, state, state.pid);
  }
  const message = `Port ${ports.join(' and port ')} is used by another program: choose one with --port`;
  throw new InfrastructureError('infrastructure.port-taken', message);
}

function running(folder: string, { engine, port, data, startedAt }: LocalState, pid: number): RunningEngine {
  const url = `dynamodb://${TABLE_NAME}?endpoint=${endpointOf({ port })}`;
  return { engine, pid, port, data, log: logFile(folder), startedAt, url };
}

function refuseOther({ cwd, port, data }: UpOptions, state: LocalState): void {
  const how = 'which the running engine uses (`headgate local down` stops it)';
  if (port !== undefined && port !== state.port) throw new ValidationError('--port', `${state.port}, ${how}`, port);
  if (data !== undefined && resolve(cwd, data) !== state.data) {
    throw new ValidationError('--data', `${state.data}, ${how}`, resolve(cwd, data));
  }
}

async function untilItAnswers(state: LocalState, pid: number): Promise<void> {
  if (await doesAnswer(state, ANSWER_MS)) return;
  const message = `The engine (process ${pid}) does not answer on ${endpointOf(state)}: \`headgate local down\` stops it`;
  throw new InfrastructureError('infrastructure.local-start', message);
}

async function doesAnswer(state: LocalState, withinMs: number): Promise<boolean> {
  try {
    await answers(endpointOf(state), { served: true, signal: AbortSignal.timeout(withinMs) });
    return true;
  } catch {
    return false;
  }
}

/** The engine's process. The command line must match, too: the operating system may have reused the id. */
function findProcess({ pid, args }: LocalState): number | null {
  const processes = listProcesses();
  const candidates = pid === null ? [...processes.keys()] : [pid];
  return candidates.find((candidate) => hasArguments(processes.get(candidate), args)) ?? null;
}

/** A command that was killed while it started the engine leaves a process that has the engine's command line a moment later. */
async function findEngine(state: LocalState): Promise<number | null> {
  if (state.isStarting === true) await within(EXEC_MS, () => findProcess(state) !== null);
  return findProcess(state);
}

export type LocalStatus =
  | { readonly running: false; readonly data: string | null }
  | (RunningEngine & { readonly running: true; readonly answers: boolean });

/** Changes nothing. */
export async function readStatus(folder: string): Promise<LocalStatus> {
  const state = readLocalState(folder);
  const pid = state === null ? null : findProcess(state);
  if (state === null || pid === null) return { running: false, data: state?.data ?? null };
  return { running: true, answers: await doesAnswer(state, STATUS_MS), ...running(folder, state, pid) };
}

export interface Stopped {
  /** The process that was stopped; null: none ran. */
  readonly pid: number | null;
  readonly purged: boolean;
  /** Where the data is, or was; null: there was never any. */
  readonly data: string | null;
}

/** Stops the engine that `startLocal` started, if it runs, and no other process; resolves once the process has ended. */
export async function stopLocal(folder: string, { purge }: { readonly purge: boolean }): Promise<Stopped> {
  if (!existsSync(folder)) return { pid: null, purged: false, data: null };
  return underLock(folder, async () => {
    const state = readLocalState(folder);
    if (state === null) return { pid: null, purged: false, data: null };
    const pid = await findEngine(state);
    if (pid !== null) await end(state, pid);
    if (purge) {
      purgeData(state);
      rmSync(logFile(folder), { force: true });
      removeLocalState(folder);
    } else if (state.pid !== null || state.isStarting === true) {
      const { isStarting: _, ...known } = state;
      writeLocalState(folder, { ...known, pid: null });
    }
    return { pid, purged: purge, data: state.data };
  });
}

/** SIGTERM comes first: an engine that shuts down by itself leaves one file, without a write-ahead log. */
async function end(state: LocalState, pid: number): Promise<void> {
  const hasEnded = (): boolean => findProcess({ ...state, pid }) === null;
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
    if (!(await within(STOP_MS, hasEnded))) continue;
    // The engine closes its sockets last, and the next start needs the same port.
    await within(RELEASE_MS, async () => (await freePort(state.port)) !== null);
    return;
  }
  throw new InfrastructureError('infrastructure.local-stop', `The engine (process ${pid}) does not stop`);
}

async function within(ms: number, isSo: () => boolean | Promise<boolean>): Promise<boolean> {
  const untilMs = performance.now() + ms;
  while (!(await isSo())) {
    if (performance.now() > untilMs) return false;
    await delay(LOOK_EVERY_MS);
  }
  return true;
}
