import type { Command } from 'commander';
import type { GlobalOptions } from './global-options.js';
import type { Result } from './result.js';
import type { Session } from './session.js';
import type { StackAction, StackOptions } from '../stack/stack-session.js';
import type { Terminal } from '../terminal/terminal.js';

export interface CommandContext {
  readonly terminal: Terminal;
  readonly version: string;
  /** A program in which every command is defined, for what must know all of them. */
  readonly createWholeProgram: () => Promise<Command>;
}

/** Defines a command of which the program knows only the name: adds its verbs, or its options and its action. */
export type Definition = (command: Command, context: CommandContext) => void;

/** An action that needs no store. `args` are the arguments of the command in order. */
type PlainAction<O> = (args: readonly string[], options: GlobalOptions & O) => Promise<Result>;

/** An action on a store. `args` are the arguments of the command in order, `O` its own options. */
export type StoreAction<O = object> = (session: Session, args: readonly string[], options: O) => Promise<Result>;

interface CommandText {
  /** The name with its arguments: `show <entity>`. */
  readonly usage: string;
  readonly summary: string;
}

interface VerbText extends CommandText {
  /** Complete command lines without `headgate`. */
  readonly examples: readonly string[];
}

export function addCommand(parent: Command, { usage, summary }: CommandText): Command {
  return parent.command(usage).summary(summary).description(summary);
}

/** Adds a verb to a noun. The caller adds options and the action. */
export function addVerb(noun: Command, { examples, ...text }: VerbText): Command {
  return addExamples(addCommand(noun, text), examples);
}

export function addExamples(command: Command, examples: readonly string[]): Command {
  const lines = examples.map((example) => `  $ headgate ${example}\n`);
  return command.addHelpText('after', `\nExamples:\n${lines.join('')}`.trimEnd());
}

/** Runs an action on the store that the global options name. The library is loaded only when the command runs. */
export function onStore<O>({ terminal }: CommandContext, action: StoreAction<O>) {
  return async (...called: unknown[]): Promise<void> => {
    const command = called.at(-1) as Command;
    const options = command.optsWithGlobals<GlobalOptions & O>();
    const { runOnStore } = await import('./run-on-store.js');
    await runOnStore(terminal, options, (session) => action(session, argumentsOf(command), options));
  };
}

/** Runs an action on a CloudFormation stack. The AWS SDK is loaded only when the command runs. */
export function onStack<O>({ terminal, version }: CommandContext, action: StackAction<O>) {
  return async (...called: unknown[]): Promise<void> => {
    const command = called.at(-1) as Command;
    const options = command.optsWithGlobals<GlobalOptions & StackOptions & O>();
    const { runOnStack } = await import('../stack/run-on-stack.js');
    await runOnStack(terminal, version, options, async (session) => action(session, options));
  };
}

/** Runs an action that needs no store. */
export function withoutStore<O>({ terminal }: CommandContext, action: PlainAction<O>) {
  return async (...called: unknown[]): Promise<void> => {
    const command = called.at(-1) as Command;
    const options = command.optsWithGlobals<GlobalOptions & O>();
    const { printResult } = await import('./print-result.js');
    printResult(terminal, options, await action(argumentsOf(command), options));
  };
}

function argumentsOf(command: Command): readonly string[] {
  return command.processedArgs.filter((word): word is string => typeof word === 'string');
}

/** For options that can be repeated. */
export function appendValue(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Adds the options that every list has. */
export function addPaging(command: Command): Command {
  return command
    .option('--limit <count>', 'the size of a page: 1 to 1000, by default 100')
    .option('--after <next>', 'start after the `next` of the previous page')
    .option('--all', 'read every page');
}
