/** A part of a text. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

const STRUCTURE = /["{}[\],]/g;

/**
 * Where the value of a member of a JSON object stands in its text; null: the object has no such member. Of two, the
 * last counts.
 */
export function spanOfMember(text: string, name: string): Span | null {
  let found: Span | null = null;
  let from: number | null = null;
  let depth = 0;
  let isKeyNext = false;
  for (let at = nextOf(text, 0); at < text.length; at = nextOf(text, at)) {
    const character = text[at];
    if (character === '"') {
      const end = endOfString(text, at);
      if (depth === 1 && isKeyNext) {
        if (JSON.parse(text.slice(at, end)) === name) from = text.indexOf(':', end) + 1;
        isKeyNext = false;
      }
      at = end;
      continue;
    }
    const endsMember = depth === 1 && (character === ',' || character === '}');
    if (endsMember && from !== null) found = { from, to: at };
    if (endsMember) from = null;
    if (character === '{' || character === '[') depth += 1;
    else if (character !== ',') depth -= 1;
    isKeyNext = depth === 1 && (character === ',' || character === '{');
    at += 1;
  }
  return found;
}

function nextOf(text: string, at: number): number {
  STRUCTURE.lastIndex = at;
  return STRUCTURE.exec(text)?.index ?? text.length;
}

/** The place after the quote that ends a string. A quote behind an odd number of backslashes is part of it. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text[end - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 0) return end + 1;
  }
  return text.length;
}
