import { execFile, type ExecFileException } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runCli as runInProcess } from '../../../src/cli/run/run-cli.js';
import { fakeTerminal } from './fake-terminal.js';

export const CLI = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string;
};

export interface CliRun {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface CliOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The content of standard input. */
  readonly input?: string;
}

let lastRun: Promise<unknown> = Promise.resolve();

/**
 * Runs a command in this process, like a shell without a terminal. One at a time: `process.env` is the environment of
 * the command while it runs, because the library and the SDK read it there.
 */
export async function runCli(args: readonly string[], { env = {}, input = '' }: CliOptions = {}): Promise<CliRun> {
  const run = lastRun.then(async () => {
    const before = { ...process.env };
    replaceEnvironment({ ...plainEnvironment(), AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true', ...env });
    try {
      const terminal = fakeTerminal({ env: { ...process.env }, input });
      const exitCode = await runInProcess(args, terminal, version);
      return { exitCode, stdout: terminal.outText(), stderr: terminal.errText() };
    } finally {
      replaceEnvironment(before);
    }
  });
  lastRun = run.catch(() => {});
  return run;
}

function replaceEnvironment(wanted: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) if (!(name in wanted)) delete process.env[name];
  Object.assign(process.env, wanted);
}

/** Starts the built program as a new process. */
export function launchCli(args: readonly string[], { env = {}, input = '' }: CliOptions = {}): Promise<CliRun> {
  return new Promise((resolve, reject) => {
    const options = { env: { ...plainEnvironment(), ...env } };
    const child = execFile(process.execPath, [CLI, ...args], options, (error, stdout, stderr) => {
      const exitCode = exitCodeOf(error);
      if (exitCode === null) reject(error);
      else resolve({ exitCode, stdout, stderr });
    });
    child.stdin?.end(input);
  });
}

/** null if a signal ended the process. */
function exitCodeOf(error: ExecFileException | null): number | null {
  if (error === null) return 0;
  return typeof error.code === 'number' ? error.code : null;
}

/** The environment without settings of the machine and of the test runner. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const strange = /^(?:HEADGATE_|NODE_|VITEST|FORCE_COLOR|NO_COLOR|CI$)/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !strange.test(name)));
}
