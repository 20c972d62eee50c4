#!/usr/bin/env node
import { readFileSync } from 'node:fs';
import { describeFailure, printFailure } from './run/failure.js';
import { runCli } from './run/run-cli.js';
import { createTerminal } from './terminal/terminal.js';

const terminal = createTerminal(process);

// The AWS SDK would warn about an old Node on every call, which the user of a command cannot change.
process.env['AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED'] ??= 'true';

let isOutputLost = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (terminal.outlivesOutput === true) {
    if (!isOutputLost) terminal.err(`headgate: standard output fails, the server goes on: ${error.message}\n`);
    isOutputLost = true;
    return;
  }
  // A closed pipe (`| head`) is not a failure; a full disk is one.
  if (error.code === 'EPIPE') process.exit(process.exitCode ?? terminal.exitCode);
  printFailure(terminal, describeFailure(error), false);
  process.exit(1);
});
// If the reader of the messages is gone, there is no other place for them. Without a listener the error would end the
// process: a server or a worker must run on, and a command must keep its exit code.
process.stderr.on('error', () => {});

process.exitCode = await runCli(process.argv.slice(2), terminal, readVersion());

/** The path is relative to `dist/cli/main.js`. */
function readVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}
