import type { LevelOperation } from '../../../backend.js';
import type { Amount } from '../../../core/bucket/decide.js';
import { partAt, type ShardLocations } from './grant-location.js';

/** One operation for each shard that the grant was taken from, divided as a change is. */
export function divideOperation(level: LevelOperation, locations: ShardLocations): readonly LevelOperation[] {
  if (locations.length === 1) return [level];
  return locations.map((_, at) => {
    const partOf = (amounts: readonly Amount[]): readonly Amount[] =>
      amounts.map(({ name, milli }) => ({ name, milli: partAt(locations, at, name, milli) }));
    const dueIfLost = partOf(level.dueIfLost).filter(({ milli }) => milli !== 0);
    return { ...level, dueIfLost, operation: operationAt(level.operation, at, partOf) };
  });
}

function operationAt(
  operation: LevelOperation['operation'],
  at: number,
  partOf: (amounts: readonly Amount[]) => readonly Amount[],
): LevelOperation['operation'] {
  switch (operation.kind) {
    case 'settle':
    case 'commit':
      return { ...operation, ...statedAt(operation, at), totals: partOf(operation.totals) };
    case 'adjust':
      return { ...operation, ...statedAt(operation, at), deltas: partOf(operation.deltas) };
    case 'follow':
      return { ...operation, totals: partOf(operation.totals) };
    case 'release':
    case 'rollback':
      return operation;
  }
}

/** What is stated for the parents is charged on no shard of this level. The first one keeps it. */
function statedAt<T>(
  { stated = [] }: { readonly stated?: readonly T[] },
  at: number,
): { readonly stated: readonly T[] } {
  return { stated: at === 0 ? stated : [] };
}
