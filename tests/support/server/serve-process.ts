import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const BUILT = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

/** A `headgate serve` of its own process. */
export interface ServeProcess {
  readonly url: string;
  readonly child: ChildProcess;
  /** The exit code, or the signal that ended the process. */
  readonly ended: Promise<number | string>;
}

/** Starts `headgate serve` on a free port of this machine, in the folder `cwd`. Resolves when it listens. */
export async function startServe(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  cwd?: string,
): Promise<ServeProcess> {
  const child = spawn(process.execPath, [BUILT, 'serve', '--port', '0', '--json', ...args], {
    env: { ...process.env, ...env },
    cwd,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = new Promise<number | string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? code ?? 0));
  });
  const url = await new Promise<string>((resolve, reject) => {
    void ended.then((end) => reject(new Error(`headgate serve ended with ${end}`)));
    createInterface({ input: child.stdout }).once('line', (line) => {
      resolve((JSON.parse(line) as { readonly url: string }).url);
    });
  });
  return { url, child, ended };
}
