import type { AttributeValue } from '../client/transport.js';

/** Cached: every acquire needs some, and a new string must be internalized before it can be a property key. */
const NAME_ALIASES: string[] = [];
const VALUE_ALIASES: string[] = [];

/**
 * Names that need no alias: identifiers that DynamoDB does not reserve. Each alias would be written, signed and parsed
 * with every acquire. Long names have an alias, because an expression is limited to 4 KB.
 */
const PLAIN_NAME = /^(?:rf|w|wc|ac|cv|un|pzr?|PK|SK|b_\w{1,8})$/;

/** Cached, except for holders: each lease has another name. */
const KNOWN_PLAIN = new Map<string, boolean>();
const MAX_KNOWN_PLAIN = 1_000;

/**
 * The aliases of one request. They are numbered, not derived from names: `b_a-b.c_tk` is not an identifier. A value that is
 * used twice, such as the write id, is sent once.
 */
export class Aliases {
  #names: Record<string, string> | undefined;
  #values: Record<string, AttributeValue> | undefined;
  #ofNames: Map<string, string> | null = null;
  readonly #numbers = new Map<string, string>();
  readonly #texts = new Map<string, string>();
  #nameCount = 0;
  #valueCount = 0;

  get names(): Record<string, string> | undefined {
    return this.#names;
  }

  get values(): Record<string, AttributeValue> | undefined {
    return this.#values;
  }

  /** The name itself, or its alias. */
  ofName(attribute: string): string {
    if (isPlain(attribute)) return attribute;
    const known = this.#ofNames?.get(attribute);
    if (known !== undefined) return known;
    const alias = (NAME_ALIASES[this.#nameCount] ??= `#a${this.#nameCount}`);
    this.#nameCount += 1;
    (this.#names ??= {})[alias] = attribute;
    (this.#ofNames ??= new Map()).set(attribute, alias);
    return alias;
  }

  ofValue(value: AttributeValue): string {
    const { N, S } = value;
    if (N !== undefined) return this.#numbers.get(N) ?? this.#remember(this.#numbers, N, value);
    if (S !== undefined) return this.#texts.get(S) ?? this.#remember(this.#texts, S, value);
    return this.#newAlias(value);
  }

  #remember(known: Map<string, string>, text: string, value: AttributeValue): string {
    const alias = this.#newAlias(value);
    known.set(text, alias);
    return alias;
  }

  #newAlias(value: AttributeValue): string {
    const alias = (VALUE_ALIASES[this.#valueCount] ??= `:v${this.#valueCount}`);
    this.#valueCount += 1;
    (this.#values ??= {})[alias] = value;
    return alias;
  }
}

function isPlain(attribute: string): boolean {
  if (attribute.startsWith('h_')) return false;
  const known = KNOWN_PLAIN.get(attribute);
  if (known !== undefined) return known;
  if (KNOWN_PLAIN.size >= MAX_KNOWN_PLAIN) KNOWN_PLAIN.clear();
  const plain = PLAIN_NAME.test(attribute);
  KNOWN_PLAIN.set(attribute, plain);
  return plain;
}
