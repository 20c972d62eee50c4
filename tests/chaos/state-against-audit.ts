import { buildFirstNamespaceId } from '../../src/core/identifiers.js';
import { Limit } from '../../src/core/limit.js';
import type { Row } from '../support/file/file-rows.js';

/** An audit record as it is stored in the file. */
interface Entry {
  readonly ns: string;
  readonly action: string;
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
}

const REGISTRY = '_';
const OWNED = ['audit', 'buckets', 'configs', 'entities', 'managed', 'usage'];

/** Changes without an audit record and audit records without a change, as sentences. */
export function contradictions(rows: Readonly<Record<string, readonly Row[]>>): string[] {
  const entries = rowsOf(rows, 'audit').map(entryOf);
  const namespaces = rowsOf(rows, 'namespaces');
  const known = new Set<unknown>([REGISTRY, ...namespaces.map(({ id }) => id)]);
  const strays = OWNED.flatMap((table) => rowsOf(rows, table).filter(({ ns }) => !known.has(ns)));
  return [
    ...strays.map((row) => `${JSON.stringify(row)} belongs to no namespace`),
    ...compare('namespace', storedNamespaces(namespaces), chains(ofNamespace(entries, REGISTRY), idOfNamespace)),
    ...namespaces.flatMap((namespace) => contradictionsWithin(rows, entries, namespace)),
  ];
}

function contradictionsWithin(
  rows: Readonly<Record<string, readonly Row[]>>,
  entries: readonly Entry[],
  { id, name, status, sequence }: Row,
): string[] {
  const own = ofNamespace(entries, String(id));
  const mine = (table: string): readonly Row[] => rowsOf(rows, table).filter(({ ns }) => ns === id);
  if (status === 'purging') {
    return OWNED.filter((table) => mine(table).length > 0).map((table) => `${name} was purged, but not its ${table}`);
  }
  const ofEntities = own.filter(({ action }) => action.startsWith('entity.'));
  const ofConfigs = own.filter(({ action }) => action.startsWith('config.'));
  const resets = own.filter(({ action }) => action === 'bucket.reset').map((entry) => keyOfConfig(entry));
  const found = [
    ...compare(
      'entity',
      storedEntities(mine('entities')),
      chains(ofEntities, ({ subject }) => subject),
    ),
    ...compare('config', storedConfigs(mine('configs')), chains(ofConfigs, keyOfConfig)),
  ];
  const reset = mine('buckets')
    .filter(isReset)
    .map(({ entity, resource }) => `${entity} ${resource}`);
  if (reset.join() !== resets.join()) found.push(`buckets reset: ${reset.join()}, recorded: ${resets.join()}`);
  if (sequence !== ofConfigs.length) found.push(`${sequence} config changes, ${ofConfigs.length} recorded`);
  if (own.length !== ofEntities.length + ofConfigs.length + resets.length) found.push('records of unknown kind');
  return found;
}

/** The last state of each subject by its audit records. Each record must begin with the state of the one before it. */
function chains(entries: readonly Entry[], keyOf: (entry: Entry) => string): Map<string, string> {
  const states = new Map<string, string>();
  for (const entry of entries) {
    const key = keyOf(entry);
    const [before, after] = [JSON.stringify(entry.before), JSON.stringify(entry.after)];
    const previous = states.get(key) ?? firstState(key);
    states.set(key, previous === before ? after : `${previous} is not ${before}`);
  }
  return states;
}

/** The first namespace of a file is created without an audit record. */
const FIRST = buildFirstNamespaceId('default');

function firstState(key: string): string {
  return key === FIRST ? 'initial' : 'null';
}

function compare(what: string, stored: ReadonlyMap<string, string>, recorded: ReadonlyMap<string, string>): string[] {
  const keys = new Set([...stored.keys(), ...recorded.keys()]);
  return [...keys].flatMap((key) => {
    const [is, says] = [stored.get(key) ?? 'null', recorded.get(key) ?? (key === FIRST ? stored.get(key) : 'null')];
    return is === says ? [] : [`${what} ${key} is ${is}, its last record says ${says}`];
  });
}

function storedNamespaces(rows: readonly Row[]): Map<string, string> {
  return new Map(
    rows.map(({ id, name, status, created_at: createdAtMs }) => [
      String(id),
      JSON.stringify({ id, name, status, createdAtMs }),
    ]),
  );
}

function storedEntities(rows: readonly Row[]): Map<string, string> {
  return new Map(
    rows.map(({ id, name, parent, cascade, metadata, created_at: createdAtMs, version }) => [
      String(id),
      JSON.stringify({
        id,
        name: JSON.parse(String(name)) as unknown,
        parentId: parent,
        cascade: cascade === 1,
        metadata: JSON.parse(String(metadata)) as unknown,
        createdAtMs,
        version,
      }),
    ]),
  );
}

function storedConfigs(rows: readonly Row[]): Map<string, string> {
  return new Map(
    rows.map(({ kind, entity, resource, limits, on_unavailable: onUnavailable }) => {
      const subject = kind === 'system' ? '$SYSTEM' : kind === 'resource' ? `$RESOURCE:${resource}` : String(entity);
      const described = {
        ...(kind === 'entity' ? { resource } : {}),
        limits: limits === null ? [] : (JSON.parse(String(limits)) as unknown),
        ...(onUnavailable === null ? {} : { onUnavailable }),
      };
      const isNothing = limits === null && onUnavailable === null;
      return [kind === 'entity' ? `${subject} ${resource}` : subject, JSON.stringify(isNothing ? null : described)];
    }),
  );
}

function isReset({ state }: Row): boolean {
  const { l } = JSON.parse(String(state)) as { readonly l: readonly [string, number, number][] };
  const isUsed = l.some(([, , consumed]) => consumed > 0);
  return isUsed && l.every(([limit, tokens]) => tokens === Limit.parse(limit).capacityMilli);
}

function keyOfConfig({ subject, before, after }: Entry): string {
  const { resource } = (after ?? before ?? {}) as { readonly resource?: string };
  return resource === undefined ? subject : `${subject} ${resource}`;
}

function idOfNamespace({ after }: Entry): string {
  return (after as { readonly id: string }).id;
}

function ofNamespace(entries: readonly Entry[], id: string): Entry[] {
  return entries.filter(({ ns }) => ns === id);
}

function entryOf({ ns, action, subject, before, after }: Row): Entry {
  return {
    ns: String(ns),
    action: String(action),
    subject: String(subject),
    before: JSON.parse(String(before)) as unknown,
    after: JSON.parse(String(after)) as unknown,
  };
}

function rowsOf(rows: Readonly<Record<string, readonly Row[]>>, table: string): readonly Row[] {
  return rows[table] ?? [];
}
