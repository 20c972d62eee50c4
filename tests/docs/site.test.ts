import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { proseOf, ROOT } from '../support/docs/code-blocks.js';

const MODULE = new URL('../../tools/docs/site/convert-page.js', import.meta.url).href;

type ConvertPage = (file: string, text: string, exists: (path: string) => boolean) => string;

async function convert(file: string, text: string, missing: readonly string[] = []): Promise<string> {
  const { convertPage } = (await import(MODULE)) as { convertPage: ConvertPage };
  return convertPage(file, text, (path) => !missing.includes(path));
}

test.each([
  ['README.md', '[a](docs/guide/cli.md#exit-codes)', '[a](./guide/cli.md#exit-codes)'],
  ['docs/guide/cli.md', '[a](../../README.md)', '[a](../index.md)'],
  ['docs/guide/cli.md', '[a](../README.md)', '[a](../contents.md)'],
  ['docs/guide/cli.md', '[a](../adr/README.md)', '[a](../adr/index.md)'],
  ['docs/operate/README.md', '[a](costs.md)', '[a](./costs.md)'],
  ['README.md', '![a](docs/dashboard/try-360.png)', '![a](./dashboard/try-360.png)'],
  [
    'README.md',
    '[![a](docs/dashboard/try-360.png)](docs/guide/cli.md)',
    '[![a](./dashboard/try-360.png)](./guide/cli.md)',
  ],
  ['README.md', '<img width="9" src="docs/dashboard/try-360.png" alt="a">', '![a](./dashboard/try-360.png)'],
  ['docs/guide/cli.md', '[`a[0]`](#there) [b](https://example.com)', '[`a[0]`](#there) [b](https://example.com)'],
])('in %s the site shows %s as %s', async (file, text, shown) => {
  expect(await convert(file, text)).toBe(shown);
});

test('a link to a file that the site does not have becomes its text', async () => {
  expect(await convert('docs/guide/web.md', 'see [`express.ts`](../../examples/express.ts).')).toBe(
    'see `express.ts`.',
  );
});

test('a link to a missing file stops the build', async () => {
  await expect(convert('docs/guide/web.md', '[a](gone.md)', ['docs/guide/gone.md'])).rejects.toThrow('gone.md');
});

test('comments are removed, and blocks of code stay as they are', async () => {
  const code = '```ts\n// [a](gone.md) <!-- kept -->\n```';
  expect(await convert('README.md', `<!-- note -->\n${code}\n`, ['gone.md'])).toBe(`${code}\n`);
});

test('no page has an indented block of code: on a narrow screen only a fenced block scrolls by itself', () => {
  const docs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
  const pages = [
    'README.md',
    'CHANGELOG.md',
    ...docs.filter((name) => name.endsWith('.md')).map((name) => join('docs', name)),
  ];
  expect(pages.length).toBeGreaterThan(100);
  expect(pages.filter((page) => /^\n {4}\S/m.test(proseOf(page)))).toEqual([]);
});
