import type {
  Creation,
  ListStep,
  RecordStep,
  Update,
} from '../../../../src/backends/dynamodb/bucket/writes/record-write.js';
import { decodeShard, encodeShard, type ShardImage } from '../../../../src/backends/dynamodb/table/items.js';
import type { ShardKey } from '../../../../src/backends/dynamodb/table/keys.js';
import { KEY } from './shard-images.js';
import type { Limit } from '../../../../src/core/limit.js';

type Value = string | bigint;

const NOTHING: ReadonlyMap<string, Value> = new Map();

/**
 * One flat record with conditional writes: what a store must be able to do. It shares no code with the rendering of
 * writes for DynamoDB.
 */
export class FlatRecord {
  readonly #key: ShardKey;
  #limits: readonly Limit[];
  #values: Map<string, Value> | null;

  constructor(image: ShardImage | null, key: ShardKey = image?.key ?? KEY) {
    this.#key = key;
    this.#limits = image?.limits.map(({ limit }) => limit) ?? [];
    this.#values = image && valuesOf(image);
  }

  get image(): ShardImage | null {
    if (this.#values === null) return null;
    const item = Object.fromEntries(
      [...this.#values].map(([name, value]) => [name, typeof value === 'string' ? { S: value } : { N: String(value) }]),
    );
    return decodeShard(item, this.#limits, this.#key);
  }

  /** False: a condition refused the write. */
  write(write: Creation | Update): boolean {
    if (write.kind === 'create') {
      if (this.#values !== null) return false;
      this.#values = valuesOf(write.image);
      this.#limits = write.image.limits.map(({ limit }) => limit);
      return true;
    }
    const before = this.#values ?? NOTHING;
    if (!write.steps.every((step) => holds(before, step))) return false;
    const after = new Map(before);
    for (const step of write.steps) change(after, step);
    this.#values = after;
    return true;
  }

  /** As by its ttl. */
  delete(): true {
    this.#values = null;
    return true;
  }
}

function valuesOf(image: ShardImage): Map<string, Value> {
  const item = encodeShard(image);
  const values = Object.entries(item).map(([name, { S, N }]) => [name, S ?? BigInt(N!)] as const);
  return new Map<string, Value>([...values, ...(image.onSweepList ? [['GSI1PK', 'sweep'] as const] : [])]);
}

function holds(values: ReadonlyMap<string, Value>, step: RecordStep | ListStep): boolean {
  if (isListStep(step)) return true;
  const { op, attribute, value } = step;
  const stored = values.get(attribute);
  const wanted = typeof value === 'number' ? BigInt(value) : value;
  switch (op) {
    case 'equal':
      return stored === wanted;
    case 'other':
      return stored !== wanted;
    case 'at-least':
      return stored !== undefined && stored >= wanted!;
    case 'at-most':
      return stored !== undefined && stored <= wanted!;
    case 'absent-or-at-most':
      return stored === undefined || stored <= wanted!;
    case 'absent':
      return stored === undefined;
    case 'set':
    case 'add':
    case 'remove':
      return true;
  }
}

function isListStep(step: RecordStep | ListStep): step is ListStep {
  return step.op === 'list-for-sweep' || step.op === 'unlist';
}

function change(values: Map<string, Value>, step: RecordStep | ListStep): void {
  if (isListStep(step)) {
    if (step.op === 'unlist') values.delete('GSI1PK');
    else values.set('GSI1PK', 'sweep');
    return;
  }
  const { op, attribute, value } = step;
  if (op === 'set') values.set(attribute, typeof value === 'string' ? value : BigInt(value));
  if (op === 'add') values.set(attribute, BigInt(values.get(attribute) ?? 0) + BigInt(value));
  if (op === 'remove') values.delete(attribute);
}
