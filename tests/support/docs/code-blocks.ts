import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** A fenced block of a page. */
export interface CodeBlock {
  readonly page: string;
  readonly language: string;
  readonly text: string;
  /** The region that the comment before the block names, such as `examples/express.ts#app`. */
  readonly quotes: string | null;
}

/** The pages for users, by their paths from the root. Decisions are records of their time, and the reference is generated. */
export function userPages(): readonly string[] {
  const docs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
  const pages = docs.map((name) => `docs/${name.replaceAll('\\', '/')}`).filter((name) => name.endsWith('.md'));
  return ['README.md', 'SKILL.md', ...pages.filter((name) => !/^docs\/(?:adr|reference)\//.test(name)).toSorted()];
}

export function blocksOf(page: string): readonly CodeBlock[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const blocks = text.matchAll(/(?:^<!-- (examples\/\S+) -->\n)?^```(\w*)\n([^]*?)^```$/gm);
  return Array.from(blocks, ([, quotes = null, language = '', block = '']) => ({
    page,
    language,
    text: block,
    quotes,
  }));
}

/** The text of a page without its blocks. */
export function proseOf(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8').replaceAll(/^```[^]*?^```$/gm, '');
}
