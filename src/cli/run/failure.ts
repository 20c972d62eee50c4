import { CommanderError } from 'commander';
import {
  type HeadgateError,
  isHeadgateError,
  LimitsNotConfigured,
  NamespaceNotFound,
  ValidationError,
} from '../../core/errors.js';
import { reasonOf } from '../../core/reason-of.js';
import type { Terminal } from '../terminal/terminal.js';

/** A failed command: one line for people, and data for programs. */
export interface CommandFailure {
  readonly exitCode: number;
  /** null: there is nothing to print, because commander has printed help. */
  readonly message: string | null;
  readonly json: Readonly<Record<string, unknown>>;
  readonly stack: string | undefined;
}

const USAGE_EXIT = 3;
const MISSING_EXIT = 4;
const UNEXPECTED_EXIT = 1;

export function describeFailure(error: unknown): CommandFailure {
  if (error instanceof CommanderError) return describeUsage(error);
  if (isHeadgateError(error)) {
    const message = oneLine(adviceOf(error));
    const json = { ...error.toJSON(), message };
    return { exitCode: error.exitCode, message, json, stack: error.stack };
  }
  const message = oneLine(reasonOf(error));
  const json = { name: error instanceof Error ? error.name : 'Error', code: 'unexpected', message };
  return {
    exitCode: UNEXPECTED_EXIT,
    message: `unexpected: ${message}`,
    json,
    stack: error instanceof Error ? error.stack : undefined,
  };
}

function describeUsage(error: CommanderError): CommandFailure {
  const message = oneLine(error.message.replace(/^error: /, ''));
  const json = { name: 'UsageError', code: 'input.invalid', message };
  const isHelp = error.exitCode === 0 || error.code === 'commander.help';
  return isHelp
    ? { exitCode: 0, message: null, json, stack: undefined }
    : { exitCode: USAGE_EXIT, message, json, stack: error.stack };
}

/** The message of the library, unless it advises a change of code: then the command that helps. */
function adviceOf(error: HeadgateError): string {
  if (error instanceof NamespaceNotFound && error.state === 'unregistered') {
    return `Namespace ${error.namespace} is not registered: \`headgate namespace create\` creates it`;
  }
  if (error instanceof LimitsNotConfigured) {
    const { entityId, resource } = error;
    const command = `headgate resource set ${resource} -l rpm:100/min`;
    return `No stored limits for entity ${entityId} on resource ${resource}; the command does not know limits in code. \`${command}\` stores some, which then replace those in code`;
  }
  if (error instanceof ValidationError) {
    const flag = flagOf(error.field);
    if (flag !== null) return `Expected \`${flag}\` to be ${error.expected}, got ${error.got}`;
  }
  return error.message;
}

const CONSUME = 'consume';

/** The option behind a field that only that option fills; null: the field keeps its name. */
function flagOf(field: string): string | null {
  if (field === CONSUME) return '-c';
  return field.startsWith(`${CONSUME}.`) ? `-c ${field.slice(CONSUME.length + 1)}` : null;
}

function oneLine(text: string): string {
  return text.trim().replaceAll(/\s*\n\s*/g, ' ');
}

export function printFailure(terminal: Terminal, failure: CommandFailure, asJson: boolean): void {
  // The notes say which store was searched: it may be the wrong one.
  const notes = failure.exitCode === MISSING_EXIT ? terminal.notes : [];
  const line = [failure.message, ...notes.map((note) => `(${note})`)].join(' ');
  terminal.err(asJson ? `${JSON.stringify({ error: failure.json }, null, 2)}\n` : `headgate: ${line}\n`);
  if (terminal.env['HEADGATE_DEBUG'] === '1' && failure.stack !== undefined) terminal.err(`${failure.stack}\n`);
}
