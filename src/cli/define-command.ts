import type { Command } from 'commander';
import type { GlobalOptions } from './global-options.js';
import type { Result } from './result.js';
import type { Session } from './session.js';
import type { StackAction, StackOptions } from './stack-session.js';
import type { Terminal } from './terminal.js';

/** What the definitions of commands need. */
export interface CommandContext {
  readonly program: Command;
  readonly terminal: Terminal;
  readonly version: string;
}

/** An action that needs no store. */
export type PlainAction = (args: readonly string[], options: GlobalOptions) => Promise<Result>;

/** An action on a store. `args` are the words after the command's name, in order; `O` its own options. */
export type StoreAction<O = object> = (session: Session, args: readonly string[], options: O) => Promise<Result>;

interface CommandText {
  /** The name with its arguments: `show <entity>`. */
  readonly usage: string;
  readonly summary: string;
  /** Lines that can be typed as they stand, without `headgate`. */
  readonly examples: readonly string[];
}

/** A noun, under which its verbs stand. */
export function addNoun(parent: Command, name: string, summary: string, examples: readonly string[]): Command {
  return addVerb(parent, { usage: name, summary, examples });
}

/** A command that does something; its options and its action are added by the caller. */
export function addVerb(parent: Command, { usage, summary, examples }: CommandText): Command {
  return addExamples(parent.command(usage).summary(summary).description(summary), examples);
}

export function addExamples(command: Command, examples: readonly string[]): Command {
  const lines = examples.map((example) => `  $ headgate ${example}\n`);
  return command.addHelpText('after', `\nExamples:\n${lines.join('')}`.trimEnd());
}

/** Runs an action on the store that the global options name. It is loaded only now, and so is the store. */
export function onStore<O>({ terminal }: CommandContext, load: () => Promise<StoreAction<O>>) {
  return async (...called: unknown[]): Promise<void> => {
    const command = called.at(-1) as Command;
    const [{ runOnStore }, action] = await Promise.all([import('./run-command.js'), load()]);
    const options = command.optsWithGlobals<GlobalOptions & O>();
    await runOnStore(terminal, options, (session) => action(session, wordsOf(command), options));
  };
}

/** Runs an action on a CloudFormation stack. */
export function onStack<O>({ terminal, version }: CommandContext, load: () => Promise<StackAction<O>>) {
  return async (...called: unknown[]): Promise<void> => {
    const command = called.at(-1) as Command;
    const [{ runOnStack }, action] = await Promise.all([import('./run-on-stack.js'), load()]);
    const options = command.optsWithGlobals<GlobalOptions & StackOptions & O>();
    await runOnStack(terminal, version, options, async (session) => action(session, options));
  };
}

/** Runs an action that needs no store. */
export function withoutStore({ terminal }: CommandContext, load: () => Promise<PlainAction>) {
  return async (...called: unknown[]): Promise<void> => {
    const command = called.at(-1) as Command;
    const [{ printResult }, action] = await Promise.all([import('./print-result.js'), load()]);
    const options = command.optsWithGlobals<GlobalOptions>();
    printResult(terminal, options, await action(wordsOf(command), options));
  };
}

function wordsOf(command: Command): readonly string[] {
  return command.processedArgs.filter((word): word is string => typeof word === 'string');
}

/** For options that may be repeated. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** The options of every command that lists. */
export function addPaging(command: Command): Command {
  return command
    .option('--limit <count>', 'items of one page: 1 to 1000, 100 unless given')
    .option('--after <next>', 'begin after the `next` of the page before')
    .option('--all', 'every item of every page');
}
