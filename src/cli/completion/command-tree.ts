import type { Command, Option } from 'commander';

/** What a shell needs to know of a command to complete the words that follow it. */
export interface CommandNode {
  /** The words that lead here, after `headgate`: empty, `entity`, `entity show`. */
  readonly path: string;
  readonly commands: readonly CompletionWord[];
  readonly options: readonly CompletionOption[];
  /** What the first argument can be, where only some words are legal. */
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

/** Every command that is not hidden, with its own options and those that all share. */
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

/** As one word of a shell. */
export function quote(text: string): string {
  return `'${text.replaceAll(`'`, `'\\''`)}'`;
}
