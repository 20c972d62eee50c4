import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

interface Link {
  readonly page: string;
  readonly target: string;
}

/** The pages for readers, by their paths from the root. */
function pages(): readonly string[] {
  const docs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
  const found = docs.filter((name) => name.endsWith('.md')).map((name) => join('docs', name));
  return ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'llms.txt', ...found];
}

/** The text of a page without its blocks of code. */
function proseOf(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8').replaceAll(/^```[^]*?^```$/gm, '');
}

function linksOf(page: string): readonly Link[] {
  const links = proseOf(page).matchAll(/\]\((?!https?:)([^)\s]+)\)|<img [^>]*src="(?!https?:)([^"]+)"/g);
  return Array.from(links, ([, link, image = '']) => ({ page, target: link ?? image }));
}

/** The anchors of the headings of a page on GitHub: a repeated heading has a number. */
function anchorsOf(page: string): readonly string[] {
  const seen = new Map<string, number>();
  return Array.from(proseOf(page).matchAll(/^#+ (.*)$/gm), ([, heading = '']) => {
    const anchor = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-');
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
}

function leadsSomewhere({ page, target }: Link): boolean {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path));
  if (!existsSync(join(ROOT, file))) return false;
  return anchor === undefined || anchorsOf(file).includes(anchor);
}

test('every link of a page points to an existing page, and to a heading of it', () => {
  const links = pages().flatMap(linksOf);
  expect(links.length).toBeGreaterThan(50);
  expect(links.filter((link) => !leadsSomewhere(link))).toEqual([]);
});

test('a link to a missing page or heading is found', () => {
  const page = 'docs/operate/costs.md';
  expect(leadsSomewhere({ page, target: '../backends/dynamodb.md#group-commit' })).toBe(true);
  expect(leadsSomewhere({ page, target: '../backends/dynamodb.md#no-such-heading' })).toBe(false);
  expect(leadsSomewhere({ page, target: 'no-such-page.md' })).toBe(false);
});

test('the guide to operating lists each of its pages', () => {
  const listed = linksOf('docs/operate/README.md').map(({ target }) => target);
  const there = readdirSync(join(ROOT, 'docs/operate')).filter((name) => name !== 'README.md');
  expect(there.filter((name) => !listed.includes(name))).toEqual([]);
});
