import { type Command, CommanderError } from 'commander';
import { describe, expect, test } from 'vitest';
import { CLI_SHAPES } from '../../tests/support/cli-shapes.js';
import { fakeTerminal } from '../../tests/support/fake-terminal.js';
import { createProgram } from './program.js';

interface Found {
  readonly path: string;
  readonly command: Command;
}

/** Every command that is not hidden, with the words that lead to it. */
function commandsOf(command: Command, path = ''): readonly Found[] {
  const children = command.createHelp().visibleCommands(command);
  const found = children.filter((child) => child.name() !== 'help');
  return [{ path, command }, ...found.flatMap((child) => commandsOf(child, `${path} ${child.name()}`.trim()))];
}

const ALL = commandsOf(createProgram(fakeTerminal(), '1.2.3'));
const VERBS = ALL.filter(({ command }) => command.commands.length === 0);

async function helpOf(path: string): Promise<string> {
  const terminal = fakeTerminal();
  const args = [...path.split(' ').filter(Boolean), '--help'];
  await expect(createProgram(terminal, '1.2.3').parseAsync(args, { from: 'user' })).rejects.toThrow(CommanderError);
  return terminal.outText();
}

/** The lines under "Examples:", as words; quotes are those of a shell. */
function examplesIn(help: string): readonly (readonly string[])[] {
  const [, examples = ''] = help.split('Examples:\n');
  return Array.from(examples.matchAll(/^ {2}\$ headgate (.*)$/gm), ([, line = '']) =>
    Array.from(line.split(/ [<>] /)[0]?.matchAll(/'([^']*)'|(\S+)/g) ?? [], ([, quoted, bare]) => quoted ?? bare ?? ''),
  );
}

/** A program whose commands do nothing but be parsed. */
function harmlessProgram(): Command {
  const program = createProgram(fakeTerminal(), '1.2.3');
  for (const { command } of commandsOf(program)) if (command.commands.length === 0) command.action(() => {});
  return program;
}

describe('help', () => {
  test.each(ALL.map(({ path }) => path))('`headgate %s --help` has examples, and each can be typed', async (path) => {
    const examples = examplesIn(await helpOf(path));
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples) await harmlessProgram().parseAsync(example, { from: 'user' });
  });

  test('an example that cannot be typed would be found', async () => {
    const examples = examplesIn(`Examples:\n  $ headgate entity set 'a b' --colour red > x`);
    expect(examples).toEqual([['entity', 'set', 'a b', '--colour', 'red']]);
    const parsed = harmlessProgram().parseAsync(examples[0] ?? [], { from: 'user' });
    await expect(parsed).rejects.toThrow(`unknown option '--colour'`);
  });

  test('shows the options that every command takes', async () => {
    const help = await helpOf('bucket reset');
    for (const option of ['--store', '--namespace', '--principal', '--json', '--yes']) expect(help).toContain(option);
  });
});

test('every command has a documented shape', () => {
  expect(VERBS.map(({ path }) => path).toSorted()).toEqual(Object.keys(CLI_SHAPES).toSorted());
});

test('a noun alone shows its help', async () => {
  const terminal = fakeTerminal();
  await expect(createProgram(terminal, '1.2.3').parseAsync(['entity'], { from: 'user' })).rejects.toMatchObject({
    code: 'commander.help',
  });
  expect(terminal.outText()).toMatch(/^Usage: headgate entity /);
});
