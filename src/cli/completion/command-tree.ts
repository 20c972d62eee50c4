import type { Command, Option } from 'commander';

/** The words that can follow a command. */
export interface CommandNode {
  /** The words after `headgate`: empty, `entity`, `entity show`. */
  readonly path: string;
  readonly commands: readonly CompletionWord[];
  readonly options: readonly CompletionOption[];
  /** The legal values of the first argument, if they are limited. */
  readonly choices: readonly string[];
}

export interface CompletionWord {
  readonly word: string;
  readonly help: string;
}

export interface CompletionOption {
  readonly long: string;
  readonly short: string | null;
  readonly help: string;
  /** Whether a value follows. */
  readonly takesValue: boolean;
  readonly choices: readonly string[];
}

/** Every visible command, with its own options and the global ones. */
export function readCommandTree(program: Command): readonly CommandNode[] {
  const shared = program.options.map(describeOption).filter(({ long }) => long !== '--version');
  const help: CompletionOption = { long: '--help', short: '-h', help: 'show help', takesValue: false, choices: [] };
  const read = (command: Command, path: string): readonly CommandNode[] => {
    const children = visibleCommands(command);
    const own = command === program ? [] : command.options.map(describeOption);
    const node: CommandNode = {
      path,
      commands: children.map((child) => ({ word: child.name(), help: child.summary() })),
      options: [...own, ...shared, help],
      choices: command.registeredArguments[0]?.argChoices ?? [],
    };
    return [node, ...children.flatMap((child) => read(child, `${path} ${child.name()}`.trimStart()))];
  };
  return read(program, '');
}

function visibleCommands(command: Command): readonly Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((child) => child.name() !== 'help');
}

function describeOption({ long, short, description, required, optional, argChoices }: Option): CompletionOption {
  return {
    long: long ?? '',
    short: short ?? null,
    help: description,
    takesValue: required || optional,
    choices: argChoices ?? [],
  };
}

/** The options of the whole tree, each once. */
export function allOptions(tree: readonly CommandNode[]): readonly CompletionOption[] {
  return [...new Map(tree.flatMap(({ options }) => options.map((option) => [option.long, option]))).values()];
}

/** The options of the whole tree that take a value, in both their forms. */
export function valueOptions(tree: readonly CommandNode[]): readonly string[] {
  return allOptions(tree)
    .filter(({ takesValue }) => takesValue)
    .flatMap(({ long, short }) => (short === null ? [long] : [short, long]));
}

/** Quotes the text as one word of a shell. */
export function quote(text: string): string {
  return `'${text.replaceAll(`'`, `'\\''`)}'`;
}
