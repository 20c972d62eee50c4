import type { RecordStep } from '../bucket/writes/record-write.js';

/** The part of a request that depends only on its shape. */
export interface ExpressionText {
  readonly UpdateExpression?: string | undefined;
  readonly ConditionExpression: string;
}

/** A write of many holders has a shape of its own, which would only evict those of the common writes. */
export const MAX_CACHED_STEPS = 40;
const MAX_NODES = 5_000;

/**
 * The shape of the first steps of a write: their operations, and the names and aliases in the order of their use. Writes
 * of one shape have the same text and differ in their values. The nodes form a tree, so that finding a shape builds no
 * key.
 */
class ExpressionShape {
  /** Known once a write of exactly these steps was rendered. */
  text: ExpressionText | null = null;
  readonly #op: RecordStep['op'] | null;
  readonly #value: string;
  readonly #longer = new Map<string, ExpressionShape[]>();

  constructor(op: RecordStep['op'] | null, value: string) {
    this.#op = op;
    this.#value = value;
  }

  /** The shape with one more step. `name`: the attribute or its alias. `value`: the alias of its value, if it has one. */
  with(op: RecordStep['op'], name: string, value: string): ExpressionShape {
    let known = this.#longer.get(name);
    if (known === undefined) this.#longer.set(name, (known = []));
    for (const shape of known) if (shape.#op === op && shape.#value === value) return shape;
    const added = new ExpressionShape(op, value);
    known.push(added);
    nodeCount += 1;
    return added;
  }
}

let nodeCount = 0;
let none = new ExpressionShape(null, '');

/** The shape without steps. Now and then the cache starts anew, so that it stays small. */
export function emptyShape(): ExpressionShape {
  if (nodeCount > MAX_NODES) {
    none = new ExpressionShape(null, '');
    nodeCount = 0;
  }
  return none;
}
