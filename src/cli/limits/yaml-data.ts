import {
  Composer,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  type Pair,
  Parser,
} from 'yaml';
import { joinPath, ROOT } from '../../core/manifest/problems.js';

/** A place in a text; both numbers count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Plain data that was read from YAML, with the place of each part. */
export interface YamlData {
  readonly data: unknown;
  /**
   * The place of the name, or of the value, at a path such as `entities.user-1.default`; undefined: the text has no
   * such path.
   */
  locate(path: string, at: 'key' | 'value'): Place | undefined;
}

/** The text is not valid YAML, or has more than plain data. */
export class YamlError extends Error {
  readonly place: Place | undefined;
  readonly path: string;

  constructor(message: string, place: Place | undefined, path = ROOT) {
    super(message);
    this.place = place;
    this.path = path;
  }
}

/** The number of nodes that all aliases together may repeat: a real file repeats hundreds, a malicious one billions. */
const MAX_REPEATED = 100_000;

/** Far more than any real file has, and far less than the stack of functions that call themselves for each level. */
const MAX_LEVELS = 100;
const TOO_DEEP = `expected at most ${MAX_LEVELS} levels of nesting, got more`;

/** Reads one document of YAML 1.2: text, numbers, true, false, null, lists, and objects whose keys are text. */
export function parseYaml(text: string): YamlData {
  const lines = new LineCounter();
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line, column: col };
  };
  const document = composeDocument(text, lines, placeAt);
  const reader = new Reader(placeAt);
  const data = reader.read(document.contents, ROOT, 0);
  return { data, locate: (path, at) => reader.locate(path, at) };
}

type PlaceAt = (offset: number) => Place;

function composeDocument(text: string, lines: LineCounter, placeAt: PlaceAt): Document.Parsed {
  // Duplicate keys are found by the reader in one pass: the library compares each key with all others.
  const composer = new Composer({ prettyErrors: false, uniqueKeys: false, schema: 'core', merge: false });
  const [first, second] = composer.compose(tokensOf(text, lines, placeAt), true, text.length);
  // The composer makes a document of an empty text too.
  const document = first as Document.Parsed;
  const [error, ...others] = [...document.errors, ...document.warnings];
  const more = others.length === 0 ? '' : ` (and ${others.length} more)`;
  if (error !== undefined) {
    throw new YamlError(`not valid YAML: ${error.message.replaceAll(/\s+/g, ' ')}${more}`, placeAt(error.pos[0]));
  }
  if (second !== undefined)
    throw new YamlError('expected one document, got another one here', placeAt(second.range[0]));
  return document;
}

/**
 * The tokens of a text. Refuses deep nesting here, because lexer and parser keep a stack of their own, and the composer
 * recurses for each level. Its stack overflow cannot be caught: a regular expression that V8 compiles near the end of
 * the stack ends the process.
 */
function* tokensOf(text: string, lines: LineCounter, placeAt: PlaceAt) {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme);
    // The first entry is the document, and the last one may be a scalar. The reader counts exactly.
    if (parser.stack.length > MAX_LEVELS + 2) throw new YamlError(TOO_DEEP, placeAt(parser.offset));
  }
  yield* parser.end();
}

interface Places {
  readonly key: number | undefined;
  readonly value: number | undefined;
}

class Reader {
  readonly #placeAt: PlaceAt;
  readonly #places = new Map<string, Places>();
  readonly #anchors = new Map<string, Node>();
  /** The nodes that are being read: an alias to one of them would be an infinite loop. */
  readonly #open = new Set<Node>();
  #isRepeating = false;
  #repeated = 0;

  constructor(placeAt: PlaceAt) {
    this.#placeAt = placeAt;
  }

  locate(path: string, at: 'key' | 'value'): Place | undefined {
    const places = this.#places.get(path);
    const offset = at === 'key' ? (places?.key ?? places?.value) : (places?.value ?? places?.key);
    return offset === undefined ? undefined : this.#placeAt(offset);
  }

  read(node: unknown, path: string, level: number, keyAt?: number): unknown {
    const value = node as Node | null | undefined;
    const valueAt = value?.range?.[0];
    // A block below its name has the place of the name.
    const isBelow = (isMap(value) || isSeq(value)) && value.flow !== true;
    if (!this.#isRepeating) this.#places.set(path, { key: keyAt, value: isBelow ? (keyAt ?? valueAt) : valueAt });
    if (value === null || value === undefined) return null;
    if (level >= MAX_LEVELS && (isMap(value) || isSeq(value))) this.#fail(path, TOO_DEEP, valueAt);
    this.#count(path, valueAt);
    if (isAlias(value)) return this.#readAlias(value.source, path, level, valueAt);
    if (value.anchor !== undefined && !this.#isRepeating) this.#anchors.set(value.anchor, value);
    if (isScalar(value)) return this.#readScalar(value.value, value.source, path, valueAt);
    this.#open.add(value);
    try {
      if (isMap(value)) return this.#readMap(value.items, path, level);
      if (isSeq(value)) return value.items.map((item, at) => this.read(item, joinPath(path, at), level + 1));
    } finally {
      this.#open.delete(value);
    }
    return this.#fail(path, 'expected plain data', valueAt);
  }

  #readMap(pairs: readonly Pair[], path: string, level: number): Readonly<Record<string, unknown>> {
    const entries = new Map<string, unknown>();
    for (const { key, value } of pairs) {
      const keyAt = (key as Node | null)?.range?.[0];
      const name = this.#readKey(key, path, keyAt);
      if (entries.has(name)) this.#fail(path, `expected each name once, got ${JSON.stringify(name)} again`, keyAt);
      entries.set(name, this.read(value, joinPath(path, name), level + 1, keyAt));
    }
    // An assignment would fail for the name `__proto__`.
    return Object.fromEntries(entries);
  }

  #readKey(key: unknown, path: string, keyAt: number | undefined): string {
    if (isScalar(key) && typeof key.value === 'string' && key.tag === undefined) return key.value;
    const got = isScalar(key) ? (key.source ?? String(key.value)) : 'something else';
    return this.#fail(path, `expected names that are text (in quotes, if need be), got ${got || 'nothing'}`, keyAt);
  }

  #readScalar(value: unknown, source: string | undefined, path: string, at: number | undefined): unknown {
    if (value === null || typeof value === 'string' || typeof value === 'boolean') return value;
    if (typeof value !== 'number') return this.#fail(path, `expected plain data, got ${source ?? ''}`, at);
    const isInexact = Number.isInteger(value) && !Number.isSafeInteger(value) && /^\d+$/.test(source ?? '');
    if (isInexact && String(value) !== source) {
      this.#fail(path, `expected a number of at most 15 digits (or text in quotes), got ${source}`, at);
    }
    return value;
  }

  #readAlias(name: string, path: string, level: number, at: number | undefined): unknown {
    const node = this.#anchors.get(name);
    if (node === undefined) return this.#fail(path, `expected an anchor that is defined above, got *${name}`, at);
    if (this.#open.has(node)) return this.#fail(path, `expected an end, got *${name} inside of &${name}`, at);
    const before = this.#isRepeating;
    this.#isRepeating = true;
    try {
      return this.read(node, path, level);
    } finally {
      this.#isRepeating = before;
    }
  }

  #count(path: string, at: number | undefined): void {
    if (!this.#isRepeating) return;
    this.#repeated += 1;
    if (this.#repeated > MAX_REPEATED) this.#fail(path, `expected aliases for at most ${MAX_REPEATED} values`, at);
  }

  #fail(path: string, message: string, at: number | undefined): never {
    throw new YamlError(message, at === undefined ? undefined : this.#placeAt(at), path);
  }
}
