import { CommanderError } from 'commander';
import { type HeadgateError, isHeadgateError } from '../core/errors.js';
import type { Terminal } from './terminal.js';

/** How a command failed, in one line for people and as data for programs. */
export interface Failure {
  readonly exitCode: number;
  /** null: what there is to say was said, as help for instance. */
  readonly message: string | null;
  readonly json: Readonly<Record<string, unknown>>;
  readonly stack: string | undefined;
}

const USAGE_EXIT = 3;
const MISSING_EXIT = 4;
const UNEXPECTED_EXIT = 1;

export function describeFailure(error: unknown): Failure {
  if (error instanceof CommanderError) return describeUsage(error);
  if (isHeadgateError(error)) {
    const message = oneLine(adviceOf(error));
    const json = { ...error.toJSON(), message };
    return { exitCode: error.exitCode, message, json, stack: error.stack };
  }
  const message = oneLine(error instanceof Error ? error.message : String(error));
  const json = { name: error instanceof Error ? error.name : 'Error', code: 'unexpected', message };
  return {
    exitCode: UNEXPECTED_EXIT,
    message: `unexpected: ${message}`,
    json,
    stack: error instanceof Error ? error.stack : undefined,
  };
}

function describeUsage(error: CommanderError): Failure {
  const message = oneLine(error.message.replace(/^error: /, ''));
  const json = { name: 'UsageError', code: 'input.invalid', message };
  const isHelp = error.exitCode === 0 || error.code === 'commander.help';
  return isHelp
    ? { exitCode: 0, message: null, json, stack: undefined }
    : { exitCode: USAGE_EXIT, message, json, stack: error.stack };
}

/** Errors advise those who write code; this says what to type instead. */
function adviceOf(error: HeadgateError): string {
  if (isHeadgateError(error, 'namespace.missing')) {
    return error.message.replace(/limiter\.namespaces\.register creates it$/, '`headgate namespace create` creates it');
  }
  if (isHeadgateError(error, 'limits.missing')) {
    return error.message.replace(/set them with .*$/, 'set some, such as `headgate system set -l rpm:100/min`');
  }
  // `consume` is what the library calls it.
  return error.message.replace(/^(Expected `)consume(?:\.([^`]*))?`/, (_, begin: string, limit?: string) =>
    limit === undefined ? `${begin}-c\`` : `${begin}-c ${limit}\``,
  );
}

function oneLine(text: string): string {
  return text.trim().replaceAll(/\s*\n\s*/g, ' ');
}

export function printFailure(terminal: Terminal, failure: Failure, asJson: boolean): void {
  // What was looked for is not there: perhaps it was looked for in the wrong place.
  const notes = failure.exitCode === MISSING_EXIT ? terminal.notes : [];
  const line = [failure.message, ...notes.map((note) => `(${note})`)].join(' ');
  terminal.err(asJson ? `${JSON.stringify({ error: failure.json }, null, 2)}\n` : `headgate: ${line}\n`);
  if (terminal.env['HEADGATE_DEBUG'] === '1' && failure.stack !== undefined) terminal.err(`${failure.stack}\n`);
}
