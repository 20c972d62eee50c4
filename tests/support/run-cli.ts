import { execFile, type ExecFileException } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export const CLI = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface CliRun {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CliOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Runs the built program, as a shell without a terminal does. */
export function runCli(args: readonly string[], { cwd, env = {} }: CliOptions = {}): Promise<CliRun> {
  return new Promise((resolve, reject) => {
    const options = { cwd, env: { ...plainEnvironment(), ...env }, timeout: 20_000 };
    const child = execFile(process.execPath, [CLI, ...args], options, (error, stdout, stderr) => {
      const exitCode = exitCodeOf(error);
      if (exitCode === null) reject(error);
      else resolve({ exitCode, stdout, stderr });
    });
    child.stdin?.end();
  });
}

/** null: it did not end by itself. */
function exitCodeOf(error: ExecFileException | null): number | null {
  if (error === null) return 0;
  return typeof error.code === 'number' ? error.code : null;
}

/** Without what the machine or the test runner may have set. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const strange = /^(?:HEADGATE_|NODE_|VITEST|FORCE_COLOR|NO_COLOR|CI$)/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !strange.test(name)));
}
