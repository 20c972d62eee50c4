import { defaultsOf, type Fields, sameField, sameFields } from './managed-fields.js';
import { buildManagedKey, type ManagedTarget } from './managed.js';

/** One difference between what a file wants and what is there. Fields that nobody has set are left out. */
export interface Change {
  readonly action: 'create' | 'update' | 'delete';
  readonly target: ManagedTarget;
  /** null: there is nothing yet. */
  readonly before: Fields | null;
  /** null: nothing will be left. */
  readonly after: Fields | null;
}

/** What was changed or removed by hand since the file was applied, and is not what the file wants now. */
export interface Drift {
  readonly target: ManagedTarget;
  /** The fields that differ, as they were applied. */
  readonly applied: Fields;
  /** The same fields as they are; null: the whole object was removed. */
  readonly live: Fields | null;
}

/** What the file owns of an object, to be stored with the change, unless somebody else has done so; null: nothing. */
export interface Mark {
  readonly key: string;
  readonly value: Fields | null;
  readonly seen: Fields | null;
}

/** Everything that three views of one object say about it. */
export interface Comparison {
  readonly target: ManagedTarget;
  readonly views: Views;
  /** The version of the record that was compared; null where there was none. */
  readonly seenVersion: number | null;
  /** null: what the file wants is what is there. */
  readonly change: Change | null;
  /** What to write: the fields that the file owns or has owned and that are not as they should be. */
  readonly writes: Fields;
  readonly drift: Drift | null;
  /** What the file owns from now on. */
  readonly mark: Mark;
  /** The mark is on record already. */
  readonly isMarked: boolean;
  /** All fields as they will be; null: there will be no such object. */
  readonly final: Fields | null;
}

/** One object as the file wants it, as it was applied last, and as it is. undefined: not at all. */
export interface Views {
  readonly wanted: Fields | undefined;
  readonly owned: Fields | undefined;
  /** Every field. */
  readonly live: Fields | undefined;
}

/**
 * Field by field, what the file names is set; what it named before and names no longer goes back to its default; what it
 * never named stays. An object that the file has let go of goes when nothing else is left of it.
 */
export function compareObject(target: ManagedTarget, views: Views, seenVersion: number | null = null): Comparison {
  const { wanted, owned, live } = views;
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
    drift: findDrift(target, views, due),
    mark: { key: buildManagedKey(target), value: wanted ?? null, seen: owned ?? null },
    isMarked: wanted === undefined || owned === undefined ? wanted === owned : sameFields(wanted, owned),
    final,
  };
}

function findChange(
  target: ManagedTarget,
  live: Fields | undefined,
  final: Fields | null,
  writes: Fields,
): Change | null {
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

function findDrift(target: ManagedTarget, { wanted, owned, live }: Views, due: Fields): Drift | null {
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
