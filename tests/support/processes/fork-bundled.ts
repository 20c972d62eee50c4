import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Bundles a script once, and returns a function that starts it as a new process. */
export async function forkable(script: URL): Promise<(...args: readonly string[]) => ChildProcess> {
  // Inside the repository, so that packages outside the bundle are found.
  const folder = join(ROOT, '.tmp');
  mkdirSync(folder, { recursive: true });
  const outfile = join(folder, `${basename(script.pathname, '.ts')}-${process.pid}.mjs`);
  await build({
    entryPoints: [fileURLToPath(script)],
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    external: ['libsql', '@aws-sdk/*'],
    outfile,
    logLevel: 'error',
  });
  return (...args) => fork(outfile, [...args], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
}

/** The exit code, or the signal that ended the process. */
export function ended(child: ChildProcess): Promise<number | string> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? code ?? 0));
  });
}
