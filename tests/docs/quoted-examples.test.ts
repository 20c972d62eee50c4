import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** `<!-- examples/express.ts#app -->` before a block: the block is that region of the file. A region may have several parts. */
const QUOTE = /<!-- (examples\/[\w./-]+)#([\w-]+) -->\n```(\w+)\n([\s\S]*?)```/g;

const pages = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .map((name) => `docs/${name.replaceAll('\\', '/')}`)
  .concat('README.md');

function regionOf(file: string, name: string): string {
  const source = readFileSync(join(ROOT, file), 'utf8');
  const region = new RegExp(`^ *// #region ${name}\\n([\\s\\S]*?)^ *// #endregion ${name}$`, 'gm');
  const parts = Array.from(source.matchAll(region), ([, part = '']) => withoutIndent(part));
  if (parts.length === 0) throw new Error(`${file} has no region ${name}`);
  return parts.join('\n');
}

function withoutIndent(part: string): string {
  const indent = /^ */.exec(part)?.[0] ?? '';
  return part.replaceAll(new RegExp(`^${indent}`, 'gm'), '');
}

test('every quoted example is the region of the file that it names (RECORD_EXAMPLES=1 rewrites the pages)', () => {
  let quotes = 0;
  for (const page of pages) {
    const text = readFileSync(join(ROOT, page), 'utf8');
    const quoted = text.replaceAll(QUOTE, (_, file: string, name: string, language: string) => {
      quotes += 1;
      return `<!-- ${file}#${name} -->\n\`\`\`${language}\n${regionOf(file, name)}\`\`\``;
    });
    if (process.env['RECORD_EXAMPLES'] === '1') writeFileSync(join(ROOT, page), quoted);
    else expect(text, page).toBe(quoted);
  }
  expect(quotes).toBeGreaterThan(2);
});
