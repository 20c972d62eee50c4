import { describeFailure, printFailure } from './failure.js';
import { createProgram } from './program.js';
import type { Terminal } from '../terminal/terminal.js';

/**
 * Runs one command line (without the name of the program), and resolves to its exit code. Failures are printed, never
 * thrown. The SDK and the library read `process.env`, so that `terminal.env` must have the same content.
 */
export async function runCli(argv: readonly string[], terminal: Terminal, version: string): Promise<number> {
  try {
    const program = createProgram(terminal, version);
    await program.parseAsync(argv.length === 0 ? ['--help'] : argv, { from: 'user' });
    return terminal.exitCode;
  } catch (error) {
    const failure = describeFailure(error);
    if (failure.message !== null) printFailure(terminal, failure, asksForJson(argv));
    return failure.exitCode;
  }
}

/** Reads the option itself, because commander has not read the options after a usage error. */
function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).includes('--json');
}
