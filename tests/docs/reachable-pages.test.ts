import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../support/docs/code-blocks.js';

/** The pages that a page links to, by their paths from the root. */
function linkedPages(page: string): readonly string[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const targets = Array.from(text.matchAll(/\]\((?!https?:)([^)#\s]+\.md)(?:#[^)]*)?\)/g), ([, target = '']) => target);
  return targets.map((target) => join(dirname(page), target).replaceAll('\\', '/'));
}

/** The pages of `docs/` that links lead to, from `docs/README.md` on. */
function reachablePages(): ReadonlySet<string> {
  const found = new Set(['docs/README.md']);
  for (const page of found) {
    for (const linked of linkedPages(page)) if (linked.startsWith('docs/')) found.add(linked);
  }
  return found;
}

test('every page of docs can be reached by links from docs/README.md', () => {
  const reachable = reachablePages();
  const all = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
  const pages = all.filter((name) => name.endsWith('.md')).map((name) => `docs/${name.replaceAll('\\', '/')}`);
  expect(pages.length).toBeGreaterThan(50);
  expect(pages.filter((page) => !reachable.has(page))).toEqual([]);
});

test('docs/README.md itself links every page of the guide', () => {
  const listed = linkedPages('docs/README.md');
  const guide = readdirSync(join(ROOT, 'docs/guide')).map((name) => `docs/guide/${name}`);
  expect(guide.filter((page) => !listed.includes(page))).toEqual([]);
});

test.each(['docs/guide', 'docs/operate', 'docs/backends'])('llms.txt links every page of %s', (folder) => {
  const listed = linkedPages('llms.txt');
  const pages = readdirSync(join(ROOT, folder)).map((name) => `${folder}/${name}`);
  expect(pages.length).toBeGreaterThan(1);
  expect(pages.filter((page) => !listed.includes(page))).toEqual([]);
});
