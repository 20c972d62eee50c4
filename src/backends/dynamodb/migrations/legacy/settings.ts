import type { Item } from '../../client/transport.js';
import type { OldRecord } from '../convert/conversion.js';
import { Unmappable } from '../unmappable.js';

/** Settings of newer releases that have no counterpart here, and what an operator loses who drops them. */
export const DROPPABLE = {
  schedules: 'the limits keep their basic rule at all times',
  quotas: 'limits that are filled by a calendar go; a level without another limit has none of its own',
  sessions: 'limits that are filled by a session go; a level without another limit has none of its own',
  bypass: 'the limits are enforced',
  soft: 'the limits are enforced',
  cascade: 'the setting of the entity decides for all its resources',
} as const;
export type DroppableSetting = keyof typeof DROPPABLE;

/** What the survey counts: `disabled` has a counterpart, limits of 0. */
export type OldSetting = DroppableSetting | 'disabled';

/** Written where a limit has no schedule of its own beside one of the whole item. */
const NO_SCHEDULE = '-';

/** The settings of a record that this version does not have. */
export function settingsOf({ key, item }: OldRecord): ReadonlySet<OldSetting> {
  const found = new Set<OldSetting>();
  const isConfig = key.kind === 'config';
  if (!isConfig && key.kind !== 'bucket' && key.kind !== 'shard') return found;
  for (const [name, value] of Object.entries(item)) {
    if (value.S === NO_SCHEDULE) continue;
    if (/^(?:[lb]_.+_)?sched$/.test(name)) found.add('schedules');
    if (/^(?:[lb]_.+_)?rsched$/.test(name)) found.add('quotas');
    if (/^(?:w_.+_cp|b_.+_rsa)$/.test(name)) found.add('sessions');
    // A bucket shows the next three, too, and only for as long as its config says so.
    if (isConfig && /^[lw]_.+_soft$/.test(name)) found.add('soft');
    if (isConfig && name === 'cascade') found.add('cascade');
    if (isConfig && name === 'disabled') found.add(value.S === 'bypass' ? 'bypass' : 'disabled');
  }
  return found;
}

/** Throws `Unmappable` at a setting that the operator has not given up. */
export function refuseSettings(record: OldRecord, drop: ReadonlySet<DroppableSetting>): void {
  const refused = [...settingsOf(record)].filter((kind) => kind !== 'disabled' && !drop.has(kind));
  if (refused.length === 0) return;
  throw new Unmappable(
    `it has ${refused.join(' and ')}, which have no counterpart (--drop ${refused.join(' --drop ')})`,
  );
}

/** Limits of a bucket that a calendar or a session fills: without it they would never be filled again. */
export function isFilledBySetting(item: Item, limit: string): boolean {
  if (item[`b_${limit}_rsa`] !== undefined) return true;
  const calendar = item[`b_${limit}_rsched`] ?? item['rsched'];
  return calendar !== undefined && calendar.S !== NO_SCHEDULE;
}
