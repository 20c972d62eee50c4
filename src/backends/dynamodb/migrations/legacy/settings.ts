import type { Item } from '../../client/transport.js';
import type { OldRecord } from '../../schema/old-record.js';
import { Unmappable } from '../unmappable.js';

/** Settings of newer releases that an operator can drop, and the effect of dropping each. */
export const DROPPABLE = {
  schedules: 'the limits keep their basic rule at all times',
  quotas: 'limits that a calendar fills are removed; a level without another limit then has no limits',
  sessions: 'limits that a session fills are removed; a level without another limit then has no limits',
  bypass: 'the limits are enforced',
  soft: 'the limits are enforced',
  cascade: 'the setting of the entity decides for all its resources',
} as const;
export type DroppableSetting = keyof typeof DROPPABLE;

/** Settings that have a counterpart here, and what they become unless they are dropped. */
export const CONVERTED = {
  disabled: 'entities are paused forever, on every resource or on one; other levels get limits of 0',
  bypass: 'entities bypass their limits; the limits of other levels become shadows',
  soft: 'the limits become shadows',
} as const;

/** The settings that the survey counts. */
export type OldSetting = DroppableSetting | keyof typeof CONVERTED;

/** Stored for a limit without a schedule in an item that has one. */
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
    // A bucket also has the next three settings, but only as a cache of its config.
    if (isConfig && /^[lw]_.+_soft$/.test(name) && value.BOOL !== false) found.add('soft');
    if (isConfig && name === 'cascade') found.add('cascade');
    if (isConfig && name === 'disabled') found.add(value.S === 'bypass' ? 'bypass' : 'disabled');
  }
  return found;
}

export function isConverted(setting: OldSetting): setting is keyof typeof CONVERTED {
  return Object.hasOwn(CONVERTED, setting);
}

/** Throws `Unmappable` if a record has a setting that the operator did not drop. */
export function refuseSettings(record: OldRecord, drop: ReadonlySet<DroppableSetting>): void {
  const refused = [...settingsOf(record)].filter((kind) => !isConverted(kind) && !drop.has(kind));
  if (refused.length === 0) return;
  throw new Unmappable(
    `it has ${refused.join(' and ')}, which have no counterpart (--drop ${refused.join(' --drop ')})`,
  );
}

/** Limits of a bucket that a calendar or a session fills. Without that setting they would never refill. */
export function isFilledBySetting(item: Item, limit: string): boolean {
  if (item[`b_${limit}_rsa`] !== undefined) return true;
  const calendar = item[`b_${limit}_rsched`] ?? item['rsched'];
  return calendar !== undefined && calendar.S !== NO_SCHEDULE;
}
