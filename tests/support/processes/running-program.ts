import { spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { createInterface } from 'node:readline';

/** A program that does not end by itself, with the lines that it has printed. */
export interface RunningProgram extends AsyncDisposable {
  readonly lines: readonly string[];
  /** Resolves with the next line that matches. Rejects if the program ends before. */
  untilLine(pattern: RegExp): Promise<string>;
  kill(signal: NodeJS.Signals): Promise<void>;
}

/** Starts a JavaScript file with `node`. */
export function startProgram(
  name: string,
  place: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): RunningProgram {
  const child = spawn(process.execPath, [name], { ...place, stdio: ['ignore', 'pipe', 'inherit'] });
  const lines: string[] = [];
  const changes = new EventEmitter();
  let seen = 0;
  let hasEnded = false;
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    changes.emit('change');
  });
  child.once('close', () => {
    hasEnded = true;
    changes.emit('change');
  });
  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    if (hasEnded) return;
    child.kill(signal);
    await once(child, 'close');
  };
  const untilLine = async (pattern: RegExp): Promise<string> => {
    for (;;) {
      const found = lines.findIndex((line, at) => at >= seen && pattern.test(line));
      seen = found === -1 ? lines.length : found + 1;
      if (found !== -1) return lines[found] ?? '';
      if (hasEnded) throw new Error(`${name} ended without ${String(pattern)}: ${lines.join('\n')}`);
      await once(changes, 'change');
    }
  };
  return { lines, untilLine, kill, [Symbol.asyncDispose]: () => kill('SIGKILL') };
}
