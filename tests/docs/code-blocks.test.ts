import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { parseManifestFile } from '../../src/cli/limits/manifest-file.js';
import { createWholeProgram } from '../../src/cli/run/program.js';
import { fakeTerminal } from '../support/cli/fake-terminal.js';
import { isSession } from '../support/cli/page-session.js';
import { blocksOf, type CodeBlock, proseOf, userPages } from '../support/docs/code-blocks.js';

const BLOCKS = userPages().flatMap(blocksOf);

/** Pages whose console blocks are typed and compared: by `tests/e2e/cli-session.test.ts` and `tests/e2e/serve-page.test.ts`. */
const REPLAYED = [
  ...['cli', 'charge', 'configuration', 'getting-started', 'hierarchy', 'outages', 'pause', 'serve', 'waiting'].map(
    (name) => `docs/guide/${name}.md`,
  ),
  'docs/operate/multi-tenant.md',
];

/** `tests/e2e/cli-local.test.ts` types these blocks after the installation of the engine, and compares what is printed. */
const isLocalUp = ({ page, text }: CodeBlock): boolean =>
  ['docs/guide/getting-started.md', 'docs/operate/environments.md'].includes(page) &&
  /^\$ npm install [^\n]*\n\$ npx headgate local up --seed limits\.yaml\n/.test(text);

/** `tests/e2e/cli-stack.test.ts` types the blocks of these pages on a simulated AWS. */
const ON_SIMULATED_AWS = ['docs/operate/deploy.md', 'docs/operate/upgrade.md'];

const PAGE_OF_MESSAGE = 'docs/guide/limits-file.md';
const isMessage = ({ page, text }: CodeBlock): boolean =>
  page === PAGE_OF_MESSAGE && text.startsWith('headgate: limits.yaml:');

/** Blocks that no test runs, by page and first line. Their commands are checked like all others. */
const NOT_RUN: readonly (readonly [page: string, firstLine: string, reason: string])[] = [
  ['docs/backends/dynamodb.md', 'credit = floor', 'arithmetic, which the tests of the write builders check'],
  ['docs/how-an-acquire-works.md', '           caller:', 'a drawing'],
  ['docs/how-an-acquire-works.md', '           ┌───', 'a drawing'],
  [
    'docs/operate/migrate.md',
    'migrated from layout 0 to 2',
    'needs a table of 10,000 old records; tests/e2e/cli-migrate.test.ts',
  ],
];

const ofLanguage = (...languages: readonly string[]): readonly CodeBlock[] =>
  BLOCKS.filter(({ language }) => languages.includes(language));
const nameOf = ({ page, text }: CodeBlock): string => `${page}: ${text.split('\n')[0]}`;
const isNamed = ({ page, text }: CodeBlock): boolean =>
  NOT_RUN.some(([named, firstLine]) => named === page && text.startsWith(firstLine));

test('every TypeScript block of a page is a region of an example, which a test compiles and runs', () => {
  expect(ofLanguage('ts', 'js', 'tsx').length).toBeGreaterThan(30);
  expect(
    ofLanguage('ts', 'js', 'tsx')
      .filter(({ quotes }) => quotes === null)
      .map(nameOf),
  ).toEqual([]);
});

test('every console block of a page is replayed, only installs packages, or is in the list with a reason', () => {
  const replayed = (block: CodeBlock): boolean =>
    (REPLAYED.includes(block.page) && isSession(block)) || isLocalUp(block) || ON_SIMULATED_AWS.includes(block.page);
  const onlyInstalls = ({ text }: CodeBlock): boolean => /^(?:\$ npm install [^\n]*\n)+$/.test(text);
  const open = ofLanguage('console').filter((block) => !replayed(block) && !onlyInstalls(block));
  expect(open.filter((block) => !isNamed(block)).map(nameOf)).toEqual([]);
});

test('every other block of a page has a language with a check, or is in the list with a reason', () => {
  const checked = new Set(['ts', 'js', 'tsx', 'console', 'sh', 'yaml', 'json']);
  expect(
    BLOCKS.filter((block) => !checked.has(block.language) && !isNamed(block) && !isMessage(block)).map(nameOf),
  ).toEqual([]);
});

test('the list of blocks that no test runs has no entry without a block', () => {
  const unused = NOT_RUN.filter(
    ([page, firstLine]) => !BLOCKS.some((block) => block.page === page && block.text.startsWith(firstLine)),
  );
  expect(unused).toEqual([]);
});

test.each(ofLanguage('yaml').map((block) => [nameOf(block), block.text]))('%s is a limits file', (_, text) => {
  const whole = text.startsWith('namespace:') ? text : `namespace: default\n${text}`;
  expect(() => parseManifestFile(Buffer.from(whole), 'limits.yaml')).not.toThrow();
});

test('the message of docs/guide/limits-file.md is what its file says without the unit of a limit', () => {
  const [file, message] = blocksOf(PAGE_OF_MESSAGE).filter((block) => block.language === 'yaml' || isMessage(block));
  const [before = '', after = ''] = (message?.text.replace('headgate: ', '').trimEnd() ?? '').split('...');
  const wrong = Buffer.from(file?.text.replace('"rpm:60/min"', '"rpm:60"') ?? '');
  const says = expect.stringMatching(new RegExp(`^${quote(before)}.*${quote(after)}$`));
  expect(messageOf(() => parseManifestFile(wrong, 'limits.yaml'))).toEqual(says);
});

function messageOf(parse: () => unknown): string {
  try {
    parse();
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

function quote(text: string): string {
  return text.replaceAll(/[\\^$*+?.()[\]{}|]/g, String.raw`\$&`);
}

test.each(ofLanguage('json').map((block) => [nameOf(block), block.text]))('%s is JSON', (_, text) => {
  expect(() => JSON.parse(text)).not.toThrow();
});

/** The words after `headgate` in the lines of a block, without comments, redirections and pipes. */
function commandsIn({ text }: CodeBlock): readonly (readonly string[])[] {
  const lines = text.replaceAll('\\\n', ' ').split('\n');
  return lines.flatMap((line) => {
    const [, typed] = /(?:^|\(|\$ |&& |^\S+=\S+ )(?:npx )?headgate ((?:'[^']*'|"[^"]*"|[^#|)>])*)/.exec(line) ?? [];
    if (typed === undefined || line.startsWith('headgate:')) return [];
    return [typed.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []];
  });
}

/** What is wrong with a command: an unknown name, or an unknown option. */
function problemsOf(program: Command, words: readonly string[]): readonly string[] {
  let command = program;
  const known = [...program.options];
  for (const word of words) {
    const next = command.commands.find((child) => child.name() === word);
    if (next === undefined) break;
    command = next;
    known.push(...next.options);
  }
  const flags = new Set(['-h', '--help', ...known.flatMap(({ short, long }) => [short, long])]);
  const unknown = words.filter((word) => word.startsWith('-') && word !== '-' && !flags.has(word.split('=')[0]));
  return command === program && words.some((word) => !word.startsWith('-'))
    ? [`no command ${words.join(' ')}`]
    : unknown;
}

/**
 * Commands in the running text, such as `headgate usage list gpt-4`. Two words begin log messages of the functions, not
 * commands.
 */
function commandsInText(page: string): readonly (readonly string[])[] {
  const spans = proseOf(page)
    .replaceAll('\n', ' ')
    .matchAll(/`headgate (?!stream\b|reconciler\b)([^`]+)`/g);
  return Array.from(spans, ([, typed = '']) => typed.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []);
}

test('every command of a page exists and has the options that the page gives it', async () => {
  const program = await createWholeProgram(fakeTerminal(), '0.0.0');
  const typed = ofLanguage('sh', 'console').flatMap((block) =>
    commandsIn(block).map((words) => ({ page: block.page, line: words.join(' '), words })),
  );
  for (const page of userPages()) {
    typed.push(...commandsInText(page).map((words) => ({ page, line: words.join(' '), words })));
  }
  expect(typed.length).toBeGreaterThan(150);
  const wrong = typed.flatMap(({ page, line, words }) =>
    problemsOf(program, words).map((problem) => `${page}: headgate ${line}: ${problem}`),
  );
  expect(wrong).toEqual([]);
  expect(problemsOf(program, ['usage', 'list', 'gpt-4', '--no-such-option'])).toEqual(['--no-such-option']);
});
