import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { hasArguments } from '../../../src/local/process-list.js';
import { listProcesses } from '../../../src/local/processes.js';
import type { LocalState } from '../../../src/local/state.js';
import { type CliRun, launchCli, plainEnvironment, runCli } from './run-cli.js';

/** The machine of a user as `headgate local` sees it: a home, a new folder, no settings of AWS. */
export interface LocalMachine extends AsyncDisposable {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  run(...args: readonly string[]): Promise<CliRun>;
  /** `run` in a new process. */
  launch(...args: readonly string[]): Promise<CliRun>;
  /** The output of `run` with `--json`. */
  json<T = LocalEngineView>(...args: readonly string[]): Promise<T>;
  readState(): LocalState;
  changeState(change: Partial<LocalState>): void;
  /** The process ids of all engines on the data of this machine. */
  engines(): readonly number[];
}

export interface LocalEngineView {
  readonly started: boolean;
  readonly pid: number;
  readonly port: number;
  readonly url: string;
  readonly data: string;
}

export function localMachine(): LocalMachine {
  const home = mkdtempSync(join(tmpdir(), 'headgate-local-'));
  const folder = join(home, 'state');
  const stateFile = join(folder, 'local.json');
  // The SDK and Headgate treat empty variables as unset.
  const aws = Object.keys(process.env).filter((name) => name.startsWith('AWS_') && name !== 'AWS_CA_BUNDLE');
  const env = {
    ...Object.fromEntries(aws.map((name) => [name, ''])),
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
    HOME: home,
    HEADGATE_LOCAL_DIR: folder,
  };
  const run = (...args: readonly string[]): Promise<CliRun> => runCli(args, { env });
  const readState = (): LocalState => JSON.parse(readFileSync(stateFile, 'utf8')) as LocalState;
  return {
    home,
    env,
    run,
    launch: (...args) => launchCli(args, { env }),
    async json<T>(...args: readonly string[]) {
      const { exitCode, stdout, stderr } = await run(...args, '--json');
      if (exitCode !== 0) throw new Error(stderr);
      return JSON.parse(stdout) as T;
    },
    readState,
    changeState: (change) => writeFileSync(stateFile, JSON.stringify({ ...readState(), ...change })),
    engines: () => [...listProcesses()].flatMap(([pid, line]) => (isEngineOf(line, folder) ? [pid] : [])),
    async [Symbol.asyncDispose]() {
      if (existsSync(stateFile)) await run('local', 'down');
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function isEngineOf(line: string, folder: string): boolean {
  return hasArguments(line, ['--db-path', join(folder, 'dynoxide.db')]);
}

/** The environment of a process that the command line starts. */
export function environmentOf(machine: LocalMachine): NodeJS.ProcessEnv {
  return { ...plainEnvironment(), ...machine.env };
}
