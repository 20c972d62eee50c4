import type { AttributeValue } from '../transport.js';

const START = '{"Attributes":{';
/** A backslash starts an escape sequence, and JSON allows no control character in a string. */
const NOT_PLAIN = /[\\\p{Cc}]/u;
/** V8 copies shorter parts of a string. A longer part refers to the whole string, and keeps it in memory. */
const LONGEST_COPIED = 12;

/**
 * Returns what `JSON.parse` returns. An item with string and number attributes only, as a write of a bucket returns it, is
 * read without `JSON.parse`: the attributes come in a different order each time, so `JSON.parse` makes a hidden class for
 * every attribute of every answer, which takes three times as long.
 */
export function parseOutput(text: string): unknown {
  const item = text.startsWith(START) && !NOT_PLAIN.test(text) ? parsePlainItem(text) : null;
  return item === null ? JSON.parse(text) : { Attributes: item };
}

/** null: the text has another form, or is not JSON. */
function parsePlainItem(text: string): Record<string, AttributeValue> | null {
  // Without a prototype, V8 keeps the attributes in a hash table.
  const item = Object.create(null) as Record<string, AttributeValue>;
  let at = START.length;
  for (;;) {
    const nameEnd = text.indexOf('":{"', at);
    const valueStart = nameEnd + 8;
    const valueEnd = text.indexOf('"', valueStart);
    if (nameEnd < 0 || valueEnd < 0 || text[at] !== '"' || text.indexOf('"', at + 1) !== nameEnd) return null;
    const name = text.slice(at + 1, nameEnd);
    if (text.startsWith('N":"', nameEnd + 4)) item[name] = { N: text.slice(valueStart, valueEnd) };
    else if (text.startsWith('S":"', nameEnd + 4)) item[name] = { S: copyOf(text, valueStart, valueEnd) };
    else return null;
    if (text[valueEnd + 1] !== '}') return null;
    at = valueEnd + 3;
    if (text[valueEnd + 2] === '}') return at === text.length - 1 && text[at] === '}' ? item : null;
    if (text[valueEnd + 2] !== ',') return null;
  }
}

/** A part of the text that does not keep the whole text in memory: write ids and holders are cached. */
function copyOf(text: string, start: number, end: number): string {
  if (end - start <= LONGEST_COPIED) return text.slice(start, end);
  return JSON.parse(text.slice(start - 1, end + 1)) as string;
}
