#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { describeFailure, printFailure } from './failure.js';
import { runCli } from './run-cli.js';
import { createTerminal } from './terminal.js';

const terminal = createTerminal(process);

// Which Node this runs on is the concern of whoever installs it, not of everybody who types a command.
process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader that has seen enough (`| head`) is no failure; a full disk is one.
  if (error.code === 'EPIPE') process.exit(process.exitCode ?? terminal.exitCode);
  printFailure(terminal, describeFailure(error), false);
  process.exit(1);
});

process.exitCode = await runCli(process.argv.slice(2), terminal, readVersion());

/** Seen from `dist/cli/main.js`. */
function readVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
