import type { EpochMs } from '../units.js';
import { defaultsOf, type Fields, sameField, sameFields, withoutEndedPauses } from './managed-fields.js';
import { buildManagedKey, type ManagedTarget } from './managed.js';

/** One difference between the file and the store. Fields that have no value are left out. */
export interface ManifestChange {
  readonly action: 'create' | 'update' | 'delete';
  readonly target: ManagedTarget;
  /** null: the object does not exist yet. */
  readonly before: Fields | null;
  /** null: the object is deleted. */
  readonly after: Fields | null;
}

/** A change by hand since the file was applied, to values that the file does not declare. */
export interface ManifestDrift {
  readonly target: ManagedTarget;
  /** The fields that differ, as they were applied. */
  readonly applied: Fields;
  /** The same fields as they are now; null: the whole object was removed. */
  readonly live: Fields | null;
}

/** What the file owns of an object, stored with the change unless the stored mark is no longer `seen`. `value` null: nothing. */
export interface Mark {
  readonly key: string;
  readonly value: Fields | null;
  readonly seen: Fields | null;
}

/** The result of comparing three views of one object. */
export interface Comparison {
  readonly target: ManagedTarget;
  readonly views: Views;
  /** The version of the record that was compared; null if there was no record. */
  readonly seenVersion: number | null;
  /** null: the object is as the file declares it. */
  readonly change: ManifestChange | null;
  /** The fields to write: those that the file owns or owned before and that have a wrong value. */
  readonly writes: Fields;
  readonly drift: ManifestDrift | null;
  /** What the file owns after this change. */
  readonly mark: Mark;
  /** The mark is stored already. */
  readonly isMarked: boolean;
  /** All fields after the change; null: the object is deleted. */
  readonly final: Fields | null;
}

/** One object as the file declares it, as it was applied last, and as it is now. undefined: it does not exist there. */
export interface Views {
  readonly wanted: Fields | undefined;
  readonly owned: Fields | undefined;
  /** Every field. */
  readonly live: Fields | undefined;
}

/**
 * Sets each field that the file names. A field that the file named before and no longer names gets its default value.
 * A field that the file never named stays. A pause that has ended is not named: an entity that was paused by hand since
 * stays paused, whether the file named the ended pause before or only now. An object that the file no longer names is
 * deleted if it has no other fields.
 */
export function compareObject(
  target: ManagedTarget,
  views: Views,
  nowMs: EpochMs,
  seenVersion: number | null = null,
): Comparison {
  const { live } = views;
  const { wanted, owned } = withoutEndedPauses(views, nowMs);
  const defaults = defaultsOf(target);
  const due = { ...pick(defaults, Object.keys(owned ?? {})), ...wanted };
  const after = { ...defaults, ...live, ...due };
  const isWantedRecord = target.kind === 'record' && wanted !== undefined;
  const final = isWantedRecord || !sameFields(after, defaults) ? after : null;
  const writes = filter(due, (name, value) => !sameField(name, value, (live ?? defaults)[name]));
  return {
    target,
    views,
    seenVersion,
    change: findChange(target, live, final, writes),
    writes,
    drift: findDrift(target, { wanted, owned, live }, due),
    mark: { key: buildManagedKey(target), value: wanted ?? null, seen: views.owned ?? null },
    isMarked: isSameMark(wanted, views.owned),
    final,
  };
}

function isSameMark(wanted: Fields | undefined, stored: Fields | undefined): boolean {
  return wanted === undefined || stored === undefined ? wanted === stored : sameFields(wanted, stored);
}

function findChange(
  target: ManagedTarget,
  live: Fields | undefined,
  final: Fields | null,
  writes: Fields,
): ManifestChange | null {
  if (live === undefined && final === null) return null;
  if (live !== undefined && final !== null && Object.keys(writes).length === 0) return null;
  const defaults = defaultsOf(target);
  const shown = (fields: Fields): Fields => filter(fields, (name, value) => !sameField(name, value, defaults[name]));
  return {
    action: live === undefined ? 'create' : final === null ? 'delete' : 'update',
    target,
    before: live === undefined ? null : shown(live),
    after: final === null ? null : shown(final),
  };
}

function findDrift(target: ManagedTarget, { wanted, owned, live }: Views, due: Fields): ManifestDrift | null {
  if (owned === undefined) return null;
  if (live === undefined) return wanted === undefined ? null : { target, applied: owned, live: null };
  const applied = filter(
    owned,
    (name, value) => !sameField(name, value, live[name]) && !sameField(name, due[name], live[name]),
  );
  const names = Object.keys(applied);
  return names.length === 0 ? null : { target, applied, live: pick(live, names) };
}

function pick(fields: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(names.filter((name) => name in fields).map((name) => [name, fields[name]]));
}

function filter(fields: Fields, keep: (name: string, value: unknown) => boolean): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name, value]) => keep(name, value)));
}
