import { InfrastructureError, ValidationError } from '../../../core/errors.js';
import { storeArgument } from '../address.js';
import type { Table } from '../client/requests.js';
import { CONVERTED, DROPPABLE, type DroppableSetting, isConverted, type OldSetting } from './legacy/settings.js';
import type { MigrationProblem } from './tally.js';

/** A setting of old records that this version does not have. */
export interface SettingReport {
  readonly setting: OldSetting;
  readonly records: number;
  /** `refused`: the migration does not start until the operator drops it. */
  readonly treatment: 'converted' | 'dropped' | 'refused';
  /** The effect on the limits. */
  readonly effect: string;
}

export function reportSettings(
  counts: ReadonlyMap<OldSetting, number>,
  drop: ReadonlySet<DroppableSetting>,
): readonly SettingReport[] {
  return [...counts]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([setting, records]): SettingReport => {
      if (setting === 'disabled' || (isConverted(setting) && !drop.has(setting))) {
        return { setting, records, treatment: 'converted', effect: CONVERTED[setting] };
      }
      return { setting, records, treatment: drop.has(setting) ? 'dropped' : 'refused', effect: DROPPABLE[setting] };
    });
}

export function checkDrop(drop: readonly string[] = []): void {
  for (const setting of drop) {
    if (Object.hasOwn(DROPPABLE, setting)) continue;
    throw new ValidationError('drop', `one of ${Object.keys(DROPPABLE).join(', ')}`, setting);
  }
}

interface Rehearsed {
  readonly left: number;
  readonly problems: readonly MigrationProblem[];
}

/** Runs before anything is written. The error lists all records that cannot be converted. */
export function refuseUnmovable(
  table: Table,
  rehearsed: readonly Rehearsed[],
  settings: readonly SettingReport[],
): void {
  const left = rehearsed.reduce((sum, result) => sum + result.left, 0);
  if (left === 0) return;
  const problems = rehearsed.flatMap((result) => result.problems);
  const refused = settings.filter(({ treatment }) => treatment === 'refused');
  const list = [
    ...refused.map(
      ({ setting, records, effect }) => `${setting}: ${records} records (with --drop ${setting}: ${effect})`,
    ),
    ...problems.map(({ record, reason }) => `${record}: ${reason}`),
    ...(left > problems.length ? [`and ${left - problems.length} more`] : []),
  ];
  const store = storeArgument(table);
  const message = `Nothing was written: ${left} old records of table ${table.name} have no counterpart here. ${list.join('; ')}`;
  const advice = `headgate migrate --dry-run --store ${store} lists them; correct them, or keep them as they are with --leave`;
  throw new InfrastructureError('infrastructure.migration', `${message}. ${advice}`);
}
