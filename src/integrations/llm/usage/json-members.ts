/** A longer value of a member is not kept. */
const MAX_VALUE = 65_536;
const MAX_KEY = 64;
/** Paths have at most this many names. */
const MAX_NAMES = 2;

const QUOTE = 34;
const COMMA = 44;
const COLON = 58;
const OPEN_LIST = 91;
const BACKSLASH = 92;
const CLOSE_LIST = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

/** Which members to keep (`usage`, `response.usage`), and the members whose text is counted or noticed, wherever they are. */
export interface WantedMembers {
  readonly paths: ReadonlySet<string>;
  readonly counted: ReadonlySet<string>;
  /** Members whose names and texts are all counted: the arguments of a function that the model calls. */
  readonly countedWhole: ReadonlySet<string>;
  /** Members that have a text in the last part of an answer only. */
  readonly endings: ReadonlySet<string>;
}

/**
 * Reads members of a JSON text that comes in pieces, without keeping the text: an answer may have many megabytes. If the
 * text is a list, the members of its items are read. Of a member that is there twice, the last one is kept.
 */
export class JsonMembers {
  readonly #wanted: WantedMembers;
  readonly #values = new Map<string, string>();
  /** The open objects and lists, as the character codes that opened them. */
  readonly #open: number[] = [];
  /** For each open object the name of the current member, for each list nothing. */
  readonly #names: string[] = [];
  #place: 'key' | 'value' | 'in-key' | 'in-value' = 'value';
  #isEscaped = false;
  #key = '';
  #isCounted = false;
  #isEnding = false;
  #capture: { readonly path: string; readonly depth: number; text: string } | null = null;
  /** Whether the text is no JSON. What came before is kept. */
  isBroken = false;
  /** The characters of what is counted, as they stand in the JSON text. */
  characters = 0;
  /** The same text in bytes of UTF-8: at least its tokens, for every tokenizer. */
  bytes = 0;
  /** Whether a member of `endings` has a text. */
  hasEnding = false;

  constructor(wanted: WantedMembers) {
    this.#wanted = wanted;
  }

  /** Whether an object or a list is not closed yet. */
  get isOpen(): boolean {
    return this.#open.length > 0;
  }

  write(text: string): void {
    let start = 0;
    for (let at = 0; at < text.length && !this.isBroken; at++) {
      const code = text.charCodeAt(at);
      if (this.#place === 'in-key' || this.#place === 'in-value') {
        at = this.#readString(text, at);
        continue;
      }
      const isCapturing = this.#capture !== null;
      if (isCapturing && this.#endsValue(code)) {
        this.#keep(text.slice(start, at));
        this.#finish();
      }
      this.#readToken(code);
      if (!isCapturing && this.#capture !== null) start = at;
    }
    if (this.#capture !== null) this.#keep(text.slice(start));
  }

  /** The value of a member; undefined: it was not there, not complete, or no JSON. */
  value(path: string): unknown {
    return parseValue(this.#values.get(path));
  }

  /** Reads to the end of the string or of the piece, and returns the position of the last character that it read. */
  #readString(text: string, from: number): number {
    let at = from;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (this.#isEscaped) this.#isEscaped = false;
      else if (code === BACKSLASH) this.#isEscaped = true;
      else if (code === QUOTE) break;
    }
    if (this.#place === 'in-key' && this.#key.length < MAX_KEY) this.#key += text.slice(from, at);
    if (this.#isCounted) {
      this.characters += at - from;
      this.bytes += Buffer.byteLength(text.slice(from, at));
    }
    // Some vendors send an empty text with every part.
    this.hasEnding ||= this.#place === 'in-value' && this.#isEnding && at > from;
    if (at === text.length) return at;
    if (this.#place === 'in-key') this.#names[this.#names.length - 1] = this.#key;
    this.#place = this.#place === 'in-key' ? 'key' : 'value';
    return at;
  }

  #readToken(code: number): void {
    switch (code) {
      case QUOTE:
        this.#startString();
        return;
      case OPEN_OBJECT:
      case OPEN_LIST:
        this.#startValue();
        this.#open.push(code);
        this.#names.push('');
        this.#place = code === OPEN_OBJECT ? 'key' : 'value';
        return;
      case CLOSE_OBJECT:
      case CLOSE_LIST:
        // The codes of a pair differ by two.
        if (this.#open.pop() !== code - 2) this.isBroken = true;
        this.#names.pop();
        this.#place = 'value';
        return;
      case COMMA:
        this.#place = this.#open.at(-1) === OPEN_OBJECT ? 'key' : 'value';
        return;
      case COLON:
        this.#place = 'value';
        return;
      default:
        if (code > 32) this.#startValue();
    }
  }

  #startString(): void {
    const { counted, countedWhole, endings } = this.#wanted;
    const outer = countedWhole.size === 0 ? [] : this.#names.slice(0, -1);
    this.#isCounted = outer.some((name) => countedWhole.has(name));
    if (this.#place === 'key') {
      this.#key = '';
      this.#place = 'in-key';
      return;
    }
    this.#startValue();
    const name = this.#names.at(-1) ?? '';
    this.#isCounted ||= counted.has(name);
    this.#isEnding = endings.has(name);
    this.#place = 'in-value';
  }

  /** Starts to keep the value if its path is wanted. */
  #startValue(): void {
    if (this.#capture !== null || this.#place !== 'value') return;
    const names = this.#open[0] === OPEN_LIST ? this.#names.slice(1) : this.#names;
    if (names.length === 0 || names.length > MAX_NAMES || this.#open.at(-1) !== OPEN_OBJECT) return;
    const path = names.join('.');
    if (this.#wanted.paths.has(path)) this.#capture = { path, depth: this.#open.length, text: '' };
  }

  #endsValue(code: number): boolean {
    const isEnd = code === COMMA || code === CLOSE_OBJECT || code === CLOSE_LIST;
    return isEnd && this.#open.length === this.#capture?.depth;
  }

  #keep(text: string): void {
    if (this.#capture !== null && this.#capture.text.length <= MAX_VALUE) this.#capture.text += text;
  }

  #finish(): void {
    if (this.#capture === null) return;
    const { path, text } = this.#capture;
    if (text.length <= MAX_VALUE) this.#values.set(path, text);
    this.#capture = null;
  }
}

function parseValue(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}
