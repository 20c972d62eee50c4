import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/**
 * Runs an engine for a process that may be killed before it can clean up: when the stdin of this program closes, for
 * whatever reason, it kills the engine and removes its folder. It is passed to Node as text, because it must also work
 * from within a bundle. It always reads the engine's output, so that a busy parent never blocks the engine.
 */
const SUPERVISOR = `
const { spawn } = process.getBuiltinModule('node:child_process');
const { rmSync } = process.getBuiltinModule('node:fs');
const { command, args, folder, environment, readyLine } = JSON.parse(process.argv[1]);
const say = (message) => process.stdout.write(JSON.stringify(message) + '\\n');
process.stdout.on('error', () => {});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
const engine = spawn(command, args, {
  cwd: folder, env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'pipe'], windowsHide: true,
});
let output = '';
let ready = readyLine === null;
const read = (chunk) => {
  output = (output + chunk).slice(-4096);
  if (!ready && output.includes(readyLine)) { ready = true; say({ ready: true }); }
};
engine.stdout.setEncoding('utf8').on('data', read);
engine.stderr.setEncoding('utf8').on('data', read);
const end = (why) => {
  rmSync(folder, { recursive: true, force: true });
  process.stdout.write(JSON.stringify({ ended: why, output }) + '\\n', () => process.exit());
};
engine.on('error', (error) => end(error.message));
engine.on('close', (code, signal) => end('ended with ' + (signal ?? 'code ' + code)));
if (engine.pid !== undefined) say({ pid: engine.pid, ready });
process.stdin.on('error', () => {}).on('close', () => engine.kill('SIGKILL')).resume();
`;

/** A program to run, with a folder that is removed when the program ends. */
export interface SupervisedProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly folder: string;
  readonly readyLine: string | null;
  /** Aborts the wait until the program is ready. */
  readonly signal: AbortSignal;
}

export interface Supervised {
  readonly pid: number;
  /** Resolves when the program has ended, with its exit code or signal and its last output. */
  readonly ended: Promise<string>;
  /** Kills the program and resolves when it has ended. */
  readonly kill: () => Promise<void>;
}

type Message =
  | { readonly pid: number; readonly ready: boolean }
  | { readonly ready: true }
  | { readonly ended: string; readonly output: string };

/** Starts a program that ends with this process, even after kill -9. Resolves when the program reports that it is ready. */
export function supervised({ signal, ...program }: SupervisedProgram): Promise<Supervised> {
  const supervisor = spawn(process.execPath, ['--eval', SUPERVISOR, JSON.stringify(program)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // Not in the terminal's process group: Ctrl-C must reach only the tests, which then stop the engine.
    detached: process.platform !== 'win32',
    windowsHide: true,
    env: { ...process.env, NODE_OPTIONS: '' },
  });
  const gone = new Promise<void>((resolve) => supervisor.once('exit', () => resolve()));
  return new Promise((resolve, reject) => {
    let pid = 0;
    let tellEnd: (how: string) => void;
    const ended = new Promise<string>((told) => (tellEnd = told));
    supervisor.once('error', reject);
    const giveUp = (): unknown => supervisor.stdin.destroy();
    signal.addEventListener('abort', giveUp);
    supervisor.stdin.on('error', () => undefined);
    createInterface(supervisor.stdout).on('line', (line) => {
      const message = JSON.parse(line) as Message;
      if ('pid' in message) ({ pid } = message);
      if ('ended' in message) {
        const how = `${message.ended}: ${message.output.trim()}`;
        tellEnd(how);
        reject(new Error(`${program.command} ${how}`));
      } else if (message.ready) {
        signal.removeEventListener('abort', giveUp);
        letParentExit(supervisor);
        resolve({
          pid,
          ended,
          kill: () => {
            supervisor.ref();
            supervisor.stdin.destroy();
            return gone;
          },
        });
      }
    });
  });
}

/** A running engine must not keep the test process alive; it is killed when that process ends. */
function letParentExit(child: ChildProcess): void {
  child.unref();
  for (const stream of child.stdio) (stream as { unref?: () => void } | null)?.unref?.();
}
