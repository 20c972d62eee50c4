import { spawn, spawnSync } from 'node:child_process';
import { CLI, plainEnvironment } from './run-cli.js';

/** `script` of util-linux opens a terminal. That of BSD has other options. */
const { stdout: scriptVersion } = spawnSync('sh', ['-c', 'script --version'], { encoding: 'utf8' });
export const HAS_TERMINAL = process.platform !== 'win32' && scriptVersion.includes('util-linux');

/** Runs the built program at a terminal, and types `keys` after it has printed `question`. */
export function answerAtTerminal(
  line: string,
  question: string,
  keys: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly output: string; readonly code: number | null }> {
  const command = `stty cols 200; exec '${process.execPath}' '${CLI}' ${line}`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: { ...plainEnvironment(), NO_COLOR: '1', SHELL: '/bin/sh', ...env },
  });
  let output = '';
  let asked = false;
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    if (asked || !output.includes(question)) return;
    asked = true;
    child.stdin.write(keys);
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ output, code }));
  });
}
