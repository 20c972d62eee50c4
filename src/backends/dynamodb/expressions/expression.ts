import type { Int } from '../../../core/int.js';
import type { AttributeValue } from '../client/transport.js';
import { Aliases } from './aliases.js';
import type { ExpressionText } from './expression-shape.js';

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
    const UpdateExpression = update === '' ? undefined : update;
    return inputOf({ UpdateExpression, ConditionExpression: this.#conditions }, this.#aliases);
  }

  #require(condition: string): this {
    this.#conditions += this.#conditions === '' ? condition : ` AND ${condition}`;
    return this;
  }
}

export function requireUpdate(input: ExpressionInput): ExpressionInput & { readonly UpdateExpression: string } {
  return { ...input, UpdateExpression: input.UpdateExpression ?? '' };
}

/** Without the fields that would be empty, which DynamoDB refuses. */
export function inputOf({ UpdateExpression, ConditionExpression }: ExpressionText, aliases: Aliases): ExpressionInput {
  const { names, values } = aliases;
  const input: { -readonly [Part in keyof ExpressionInput]: ExpressionInput[Part] } = { ConditionExpression };
  if (UpdateExpression !== undefined) input.UpdateExpression = UpdateExpression;
  if (names !== undefined) input.ExpressionAttributeNames = names;
  if (values !== undefined) input.ExpressionAttributeValues = values;
  return input;
}

function joined(before: string, clause: string): string {
  return before === '' || clause === '' ? before + clause : `${before} ${clause}`;
}
