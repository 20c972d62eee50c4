import { readdirSync, readFileSync } from 'node:fs';
import { ROOT } from './entries.js';

const SOURCES = new URL('src/', ROOT);
const UNION = /(?:'[\w-]+'\s*\|\s*)+'[\w-]+'/g;
let written;

/**
 * The words of a union type in the order of the sources. TypeDoc gives them in the order in which the compiler met them
 * anywhere, which changes with any file.
 */
export function inWrittenOrder(words) {
  written ??= readUnions();
  return written.get(keyOf(words)) ?? words.toSorted();
}

/** The unions of words in the sources, by their words. The first file decides. */
function readUnions() {
  const unions = new Map();
  const files = readdirSync(SOURCES, { recursive: true }).filter((file) => file.endsWith('.ts'));
  for (const file of files.toSorted((a, b) => (a < b ? -1 : 1))) {
    for (const [text] of readFileSync(new URL(file, SOURCES), 'utf8').matchAll(UNION)) {
      const words = text.split('|').map((word) => word.trim().slice(1, -1));
      const key = keyOf(words);
      if (!unions.has(key)) unions.set(key, words);
    }
  }
  return unions;
}

function keyOf(words) {
  return words.toSorted().join('|');
}
