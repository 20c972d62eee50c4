import type { Int } from '../../../core/int.js';
import type { AttributeValue } from '../client/transport.js';

/** The fields of a conditional write request. */
export interface ExpressionInput {
  readonly UpdateExpression?: string;
  readonly ConditionExpression: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Record<string, AttributeValue>;
}

/** Cached: every acquire needs some, and a new string must be internalized before it can be a property key. */
const NAME_ALIASES: string[] = [];
const VALUE_ALIASES: string[] = [];

/**
 * Names that need no alias: identifiers that DynamoDB does not reserve. Each alias would be written, signed and parsed
 * with every acquire. Long names have an alias, because an expression is limited to 4 KB.
 */
const PLAIN_NAME = /^(?:rf|w|wc|ac|cv|un|PK|SK|b_\w{1,8})$/;

/**
 * Builds the expressions of one write. Aliases are numbered, not derived from names: `b_a-b.c_tk` is not an identifier.
 */
export class Expression {
  readonly #aliases = new Map<string, string>();
  readonly #names: Record<string, string> = {};
  readonly #values: Record<string, AttributeValue> = {};
  readonly #given = new Map<string, string>();
  #nameCount = 0;
  #sets = '';
  #adds = '';
  #removes = '';
  #conditions = '';
  #valueCount = 0;

  set(attribute: string, value: AttributeValue): this {
    this.#sets += `${this.#sets === '' ? 'SET' : ','} ${this.#name(attribute)} = ${this.#value(value)}`;
    return this;
  }

  /** Adding 0 is omitted. */
  add(attribute: string, amount: Int): this {
    if (amount === 0) return this;
    this.#adds += `${this.#adds === '' ? 'ADD' : ','} ${this.#name(attribute)} ${this.#value({ N: String(amount) })}`;
    return this;
  }

  remove(attribute: string): this {
    this.#removes += `${this.#removes === '' ? 'REMOVE' : ','} ${this.#name(attribute)}`;
    return this;
  }

  requireEqual(attribute: string, value: AttributeValue): this {
    return this.#require(`${this.#name(attribute)} = ${this.#value(value)}`);
  }

  requireOther(attribute: string, value: AttributeValue): this {
    return this.#require(`${this.#name(attribute)} <> ${this.#value(value)}`);
  }

  /**
   * Two comparisons, not BETWEEN: DynamoDB rejects a BETWEEN with contradictory bounds as invalid, and here the
   * condition must just fail.
   */
  requireWithin(attribute: string, least: Int | null, most: Int | null): this {
    if (least !== null) this.#require(`${this.#name(attribute)} >= ${this.#value({ N: String(least) })}`);
    if (most !== null) this.#require(`${this.#name(attribute)} <= ${this.#value({ N: String(most) })}`);
    return this;
  }

  requireAbsent(attribute: string): this {
    return this.#require(`attribute_not_exists(${this.#name(attribute)})`);
  }

  requireAbsentOrLess(attribute: string, value: AttributeValue): this {
    const name = this.#name(attribute);
    return this.#require(`(attribute_not_exists(${name}) OR ${name} < ${this.#value(value)})`);
  }

  requireExisting(attribute: string): this {
    return this.#require(`attribute_exists(${this.#name(attribute)})`);
  }

  /** For a transaction, whose type requires an UpdateExpression. */
  buildUpdate(): ExpressionInput & { readonly UpdateExpression: string } {
    const input = this.build();
    return { ...input, UpdateExpression: input.UpdateExpression ?? '' };
  }

  build(): ExpressionInput {
    const input: { -readonly [Part in keyof ExpressionInput]: ExpressionInput[Part] } = {
      ConditionExpression: this.#conditions,
    };
    const update = joined(joined(this.#sets, this.#adds), this.#removes);
    if (update !== '') input.UpdateExpression = update;
    if (this.#nameCount > 0) input.ExpressionAttributeNames = this.#names;
    if (this.#valueCount > 0) input.ExpressionAttributeValues = this.#values;
    return input;
  }

  #require(condition: string): this {
    this.#conditions += this.#conditions === '' ? condition : ` AND ${condition}`;
    return this;
  }

  #name(attribute: string): string {
    let alias = this.#aliases.get(attribute);
    if (alias === undefined) {
      alias = PLAIN_NAME.test(attribute) ? attribute : this.#newAlias(attribute);
      this.#aliases.set(attribute, alias);
    }
    return alias;
  }

  #newAlias(attribute: string): string {
    const alias = (NAME_ALIASES[this.#nameCount] ??= `#a${this.#nameCount}`);
    this.#nameCount += 1;
    this.#names[alias] = attribute;
    return alias;
  }

  /** A value that is used twice, such as the write id, is sent once. */
  #value(value: AttributeValue): string {
    const text = value.S === undefined ? value.N : `"${value.S}`;
    const given = text === undefined ? undefined : this.#given.get(text);
    if (given !== undefined) return given;
    const alias = (VALUE_ALIASES[this.#valueCount] ??= `:v${this.#valueCount}`);
    this.#valueCount += 1;
    this.#values[alias] = value;
    if (text !== undefined) this.#given.set(text, alias);
    return alias;
  }
}

function joined(before: string, clause: string): string {
  return before === '' || clause === '' ? before + clause : `${before} ${clause}`;
}
