#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { describeFailure, printFailure } from './failure.js';
import { createProgram } from './program.js';
import { createTerminal } from './terminal.js';

const terminal = createTerminal(process);
const argv = process.argv.slice(2);

// Which Node this runs on is the concern of whoever installs it, not of everybody who types a command.
process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader that has seen enough (`| head`) is no failure; a full disk is one.
  if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0);
  printFailure(terminal, describeFailure(error), false);
  process.exit(1);
});

try {
  const program = createProgram(terminal, readVersion());
  // A bare call asks for help.
  await program.parseAsync(argv.length === 0 ? ['--help'] : argv, { from: 'user' });
} catch (error) {
  const failure = describeFailure(error);
  if (failure.message !== null) printFailure(terminal, failure, asksForJson(argv));
  process.exitCode = failure.exitCode;
}

/** By hand: an error of usage means that the options were not read. */
function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end < 0 ? args.length : end).includes('--json');
}

/** Seen from `dist/cli/main.js`. */
function readVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
