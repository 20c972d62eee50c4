import type { Int } from '../../../core/int.js';
import type { AttributeValue } from '../client/transport.js';

/** The fields of a conditional write request. */
export interface ExpressionInput {
  readonly UpdateExpression?: string;
  readonly ConditionExpression: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Record<string, AttributeValue>;
}

/** Builds the expressions of one write. */
export class Expression {
  readonly #aliases = new Aliases();
  #sets = '';
  #adds = '';
  #removes = '';
  #conditions = '';

  set(attribute: string, value: AttributeValue): this {
    this.#sets += `${this.#sets === '' ? 'SET' : ','} ${this.#aliases.ofName(attribute)} = ${this.#aliases.ofValue(value)}`;
    return this;
  }

  /** Adding 0 is omitted. */
  add(attribute: string, amount: Int): this {
    if (amount === 0) return this;
    this.#adds += `${this.#adds === '' ? 'ADD' : ','} ${this.#aliases.ofName(attribute)} ${this.#aliases.ofValue({ N: String(amount) })}`;
    return this;
  }

  remove(attribute: string): this {
    this.#removes += `${this.#removes === '' ? 'REMOVE' : ','} ${this.#aliases.ofName(attribute)}`;
    return this;
  }

  requireEqual(attribute: string, value: AttributeValue): this {
    return this.#require(`${this.#aliases.ofName(attribute)} = ${this.#aliases.ofValue(value)}`);
  }

  requireOther(attribute: string, value: AttributeValue): this {
    return this.#require(`${this.#aliases.ofName(attribute)} <> ${this.#aliases.ofValue(value)}`);
  }

  /**
   * Two comparisons, not BETWEEN: DynamoDB rejects a BETWEEN with contradictory bounds as invalid, and here the
   * condition must just fail.
   */
  requireWithin(attribute: string, least: Int | null, most: Int | null): this {
    if (least !== null)
      this.#require(`${this.#aliases.ofName(attribute)} >= ${this.#aliases.ofValue({ N: String(least) })}`);
    if (most !== null)
      this.#require(`${this.#aliases.ofName(attribute)} <= ${this.#aliases.ofValue({ N: String(most) })}`);
    return this;
  }

  requireAbsent(attribute: string): this {
    return this.#require(`attribute_not_exists(${this.#aliases.ofName(attribute)})`);
  }

  requireAbsentOrLess(attribute: string, value: AttributeValue): this {
    const name = this.#aliases.ofName(attribute);
    return this.#require(`(attribute_not_exists(${name}) OR ${name} < ${this.#aliases.ofValue(value)})`);
  }

  requireAbsentOrAtMost(attribute: string, most: Int): this {
    const name = this.#aliases.ofName(attribute);
    return this.#require(`(attribute_not_exists(${name}) OR ${name} <= ${this.#aliases.ofValue({ N: String(most) })})`);
  }

  requireExisting(attribute: string): this {
    return this.#require(`attribute_exists(${this.#aliases.ofName(attribute)})`);
  }

  /** For a transaction, whose type requires an UpdateExpression. */
  buildUpdate(): ExpressionInput & { readonly UpdateExpression: string } {
    return requireUpdate(this.build());
  }

  build(): ExpressionInput {
    const update = joined(joined(this.#sets, this.#adds), this.#removes);
    const { names, values } = this.#aliases;
    // Without the fields that would be empty, which DynamoDB refuses.
    return {
      ConditionExpression: this.#conditions,
      ...(update === '' ? {} : { UpdateExpression: update }),
      ...(names === undefined ? {} : { ExpressionAttributeNames: names }),
      ...(values === undefined ? {} : { ExpressionAttributeValues: values }),
    };
  }

  #require(condition: string): this {
    this.#conditions += this.#conditions === '' ? condition : ` AND ${condition}`;
    return this;
  }
}

export function requireUpdate(input: ExpressionInput): ExpressionInput & { readonly UpdateExpression: string } {
  return { ...input, UpdateExpression: input.UpdateExpression ?? '' };
}

function joined(before: string, clause: string): string {
  return before === '' || clause === '' ? before + clause : `${before} ${clause}`;
}

/** Cached: a new string must be internalized before it can be a property key. */
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
class Aliases {
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
