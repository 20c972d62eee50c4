import type { EpochMs } from '../units.js';
import type { StoredConfig } from '../config/config.js';
import {
  type ManifestChange,
  compareObject,
  type Comparison,
  type ManifestDrift,
  type Views,
} from './compare-object.js';
import { type Fields, fieldsOfConfig, fieldsOfManifest, fieldsOfRecord, type LiveRecord } from './managed-fields.js';
import { buildManagedKey, type ManagedTarget, parseManagedKey } from './managed.js';
import type { Manifest } from './manifest.js';
import { orderRecords } from './record-order.js';
import { checkTree, type TreeChange } from './record-tree.js';

/** The part of the store that a plan needs. */
export interface LiveState {
  /** By the key of the level. */
  readonly configs: ReadonlyMap<string, StoredConfig>;
  /**
   * By id: records that the file names or named, all their parents, and all descendants of records that may move or be
   * deleted.
   */
  readonly records: ReadonlyMap<string, LiveRecord>;
}

export interface ApplyStep extends Comparison {
  readonly change: ManifestChange;
}

export interface ApplyPlan {
  /** In an order in which the store accepts each of them. */
  readonly steps: readonly ApplyStep[];
  readonly drift: readonly ManifestDrift[];
  /** How many objects are as the file declares them. */
  readonly unchanged: number;
  /** Objects that need only a new mark: they are already as wanted, or no longer exist. */
  readonly unmarked: readonly Comparison[];
}

/** Compares the file, what was applied last, and the store. Refuses a plan that the store would refuse halfway. */
export function planChanges(input: {
  readonly wanted: Manifest;
  readonly owned: ReadonlyMap<string, Fields>;
  readonly live: LiveState;
  readonly nowMs: EpochMs;
}): ApplyPlan {
  const { owned, live, nowMs } = input;
  const wanted = fieldsOfManifest(input.wanted);
  const compared: Comparison[] = [];
  for (const key of new Set([...wanted.keys(), ...[...owned.keys()].toSorted()])) {
    const target = parseManagedKey(key);
    if (target === undefined) continue;
    compared.push(compareLive(target, { wanted: wanted.get(key), owned: owned.get(key) }, live, nowMs));
  }
  const steps = compared.filter(isStep);
  const tree = treeOf(steps, live);
  checkTree(tree, (id) => wanted.get(keyOfRecord(id))?.['parent'] !== undefined);
  return {
    steps: inOrder(steps, tree),
    drift: compared.flatMap(({ drift }) => drift ?? []),
    unchanged: compared.filter(({ change, target }) => change === null && wanted.has(buildManagedKey(target))).length,
    unmarked: compared.filter(({ change, isMarked }) => change === null && !isMarked),
  };
}

/** Compares one object with its current state. */
export function compareLive(
  target: ManagedTarget,
  views: Omit<Views, 'live'>,
  live: LiveState,
  nowMs: EpochMs,
): Comparison {
  if (target.kind !== 'record') {
    const config = live.configs.get(buildManagedKey(target));
    const isThere = config !== undefined && (config.limits !== null || config.onUnavailable !== null);
    return compareObject(target, { ...views, live: isThere ? fieldsOfConfig(config, target) : undefined }, nowMs);
  }
  const record = live.records.get(target.entityId);
  return compareObject(target, { ...views, live: record && fieldsOfRecord(record, nowMs) }, nowMs, record?.version);
}

function isStep(comparison: Comparison): comparison is ApplyStep {
  return comparison.change !== null;
}

function keyOfRecord(entityId: string): string {
  return buildManagedKey({ kind: 'record', entityId });
}

function treeOf(steps: readonly ApplyStep[], { records }: LiveState): TreeChange {
  const written = new Map<string, string | null>();
  const deleted = new Set<string>();
  for (const { target, final } of steps) {
    if (target.kind !== 'record') continue;
    if (final === null) deleted.add(target.entityId);
    else written.set(target.entityId, final['parent'] as string | null);
  }
  return { live: new Map([...records].map(([id, { parentId }]) => [id, parentId])), written, deleted };
}

/** Records first, so that parents exist; then limits; then deletions. */
function inOrder(steps: readonly ApplyStep[], tree: TreeChange): readonly ApplyStep[] {
  const records = new Map(
    steps.flatMap((step) => (step.target.kind === 'record' ? [[step.target.entityId, step] as const] : [])),
  );
  const { first, last } = orderRecords(tree);
  const configs = steps.filter(({ target }) => target.kind !== 'record');
  const stepsOf = (ids: readonly string[]): readonly ApplyStep[] => ids.flatMap((id) => records.get(id) ?? []);
  return [
    ...stepsOf(first),
    ...configs.filter(({ final }) => final !== null),
    ...configs.filter(({ final }) => final === null),
    ...stepsOf(last),
  ];
}
