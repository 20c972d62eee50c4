import { type Command, CommanderError } from 'commander';
import { expect, test } from 'vitest';
import { CLI_SHAPES } from '../../../tests/support/cli/cli-shapes.js';
import { fakeTerminal } from '../../../tests/support/cli/fake-terminal.js';
import { createProgram, createWholeProgram } from './program.js';

interface Found {
  readonly path: string;
  readonly command: Command;
}

/** Every command that is not hidden, with its path. */
function commandsOf(command: Command, path = ''): readonly Found[] {
  const children = command.createHelp().visibleCommands(command);
  const found = children.filter((child) => child.name() !== 'help');
  return [{ path, command }, ...found.flatMap((child) => commandsOf(child, `${path} ${child.name()}`.trim()))];
}

const ALL = commandsOf(await createWholeProgram(fakeTerminal(), '1.2.3'));
const VERBS = ALL.filter(({ command }) => command.commands.length === 0);

async function helpOf(path: string): Promise<string> {
  const terminal = fakeTerminal();
  const args = [...path.split(' ').filter(Boolean), '--help'];
  await expect(createProgram(terminal, '1.2.3').parseAsync(args, { from: 'user' })).rejects.toThrow(CommanderError);
  return terminal.outText();
}

/** The words of each line under "Examples:", with single quotes as a shell reads them. */
function examplesIn(help: string): readonly (readonly string[])[] {
  const [, examples = ''] = help.split('Examples:\n');
  return Array.from(examples.matchAll(/^ {2}\$ headgate (.*)$/gm), ([, line = '']) =>
    Array.from(line.split(/ [<>] /)[0]?.matchAll(/'([^']*)'|(\S+)/g) ?? [], ([, quoted, bare]) => quoted ?? bare ?? ''),
  );
}

/** A program whose commands are parsed and do nothing. */
async function harmlessProgram(): Promise<Command> {
  const program = await createWholeProgram(fakeTerminal(), '1.2.3');
  for (const { command } of commandsOf(program)) if (command.commands.length === 0) command.action(() => {});
  return program;
}

test.each(ALL.map(({ path }) => path))(
  '`headgate %s --help` has examples, and the program accepts each of them',
  async (path) => {
    const examples = examplesIn(await helpOf(path));
    expect(examples.length).toBeGreaterThan(0);
    const program = await harmlessProgram();
    for (const example of examples) await program.parseAsync(example, { from: 'user' });
  },
);

test('the check of examples finds an unknown option', async () => {
  const examples = examplesIn(`Examples:\n  $ headgate entity set 'a b' --colour red > x`);
  expect(examples).toEqual([['entity', 'set', 'a b', '--colour', 'red']]);
  const parsed = (await harmlessProgram()).parseAsync(examples[0] ?? [], { from: 'user' });
  await expect(parsed).rejects.toThrow(`unknown option '--colour'`);
});

test('the help of a verb shows the options that every command accepts', async () => {
  const help = await helpOf('bucket reset');
  for (const option of ['--store', '--namespace', '--principal', '--json', '--yes']) expect(help).toContain(option);
});

test('every command has a documented JSON shape', () => {
  expect(VERBS.map(({ path }) => path).toSorted()).toEqual(Object.keys(CLI_SHAPES).toSorted());
});

test('a noun without a verb shows its help', async () => {
  const terminal = fakeTerminal();
  await expect(createProgram(terminal, '1.2.3').parseAsync(['entity'], { from: 'user' })).rejects.toMatchObject({
    code: 'commander.help',
  });
  expect(terminal.outText()).toMatch(/^Usage: headgate entity /);
});

test.each(['entity', 'acquire', 'entity set'])(
  '`headgate help %s` prints the same as the option --help',
  async (name) => {
    const [asked, flagged] = [fakeTerminal(), fakeTerminal()];
    const runs = [
      createProgram(asked, '1.2.3').parseAsync(['help', ...name.split(' ')], { from: 'user' }),
      createProgram(flagged, '1.2.3').parseAsync([...name.split(' '), '--help'], { from: 'user' }),
    ];
    for (const run of runs) await expect(run).rejects.toThrow(CommanderError);
    expect(asked.outText()).toBe(flagged.outText());
    expect(asked.outText()).toMatch(new RegExp(`^Usage: headgate ${name} [^]*Examples:`));
  },
);
