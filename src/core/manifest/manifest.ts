import { ON_UNAVAILABLE, type OnUnavailable } from '../config/config.js';
import { ValidationError } from '../errors.js';
import { checkEntityId, checkNamespace, checkResource, MAX_ENTITY_NAME } from '../identifiers.js';
import { Limit, MAX_LIMITS } from '../limit.js';
import { checkReason, encodePause, type PauseData } from '../pause.js';
import { plainObject, readFields, readJsonData, readMap } from './manifest-fields.js';
import { joinPath, type ManifestProblem, Problems, ROOT } from './problems.js';
import { measureDepths } from './tree.js';
import { MAX_CHAIN } from '../units.js';

/** The limits and entities that one file declares for a namespace, as plain data that YAML and JSON can represent. */
export interface ManifestData {
  readonly namespace: string;
  readonly system?: { readonly onUnavailable?: OnUnavailable; readonly limits?: readonly string[] };
  readonly resources?: Readonly<Record<string, ManifestLimits>> | null;
  readonly entities?: Readonly<Record<string, ManifestEntity | null>> | null;
}

/** The limits of one level in a limits file. */
export interface ManifestLimits {
  /** In the format of `Limit.parse`. */
  readonly limits: readonly string[];
}

/**
 * An entry that is empty, or has a name, a parent, `cascade`, `bypass`, metadata or `paused`, asks for a record. Limits
 * alone do not.
 */
export interface ManifestEntity {
  readonly name?: string;
  readonly parent?: string;
  readonly cascade?: boolean;
  readonly bypass?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** A pause without `until` has no end. `false`: not paused, also if it was paused by hand. */
  readonly paused?: PauseData | false;
  /** The limits for every resource that the entry does not name. */
  readonly default?: ManifestLimits;
  readonly resources?: Readonly<Record<string, ManifestLimits>>;
}

/** A manifest that was checked. It has maps, not objects, because `__proto__` is a legal name. */
export interface Manifest {
  readonly namespace: string;
  readonly system: SystemWish | null;
  readonly resources: ReadonlyMap<string, readonly Limit[]>;
  readonly entities: ReadonlyMap<string, EntityWish>;
}

/** The file does not own fields that are left out. */
export interface SystemWish {
  readonly limits?: readonly Limit[];
  readonly onUnavailable?: OnUnavailable;
}

export interface EntityWish {
  /** null: the file declares that there is no record. */
  readonly record: RecordWish | null;
  readonly limits: readonly Limit[] | null;
  readonly resources: ReadonlyMap<string, readonly Limit[]>;
}

export interface RecordWish {
  readonly name?: string;
  readonly parent?: string;
  readonly cascade?: boolean;
  readonly bypass?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** null: not paused. */
  readonly paused?: PauseData | null;
}

/** The manifest that plain data describes. Refuses data with unknown fields or illegal values. */
export function readManifest(data: unknown): Manifest {
  const problems = new Problems();
  const manifest = readRoot(problems, data);
  problems.throwIfAny();
  return manifest;
}

/** All problems of the data; empty if `readManifest` accepts it. */
export function findProblems(data: unknown): readonly ManifestProblem[] {
  const problems = new Problems();
  readRoot(problems, data);
  return problems.found;
}

function readRoot(problems: Problems, data: unknown): Manifest {
  const fields = readFields(problems, ROOT, data, ['namespace', 'system', 'resources', 'entities']);
  const namespace = fields.get('namespace');
  if (plainObject(data)) problems.try('namespace', namespace, () => checkNamespace(namespace));
  const system = fields.has('system') ? readSystem(problems, fields.get('system')) : null;
  const resources = readMap(problems, 'resources', fields.get('resources'), checkResource, readLevel);
  const entities = readMap(problems, 'entities', fields.get('entities'), checkEntityId, readEntity);
  checkParents(problems, entities);
  return { namespace: namespace as string, system, resources, entities };
}

function readSystem(problems: Problems, value: unknown): SystemWish {
  const before = problems.found.length;
  const fields = readFields(problems, 'system', value, ['onUnavailable', 'limits']);
  if (fields.size === 0 && problems.found.length === before) {
    problems.add('system', 'an object with `limits` or `onUnavailable`, or left out', value);
  }
  const onUnavailable = fields.get('onUnavailable') as OnUnavailable | undefined;
  if (fields.has('onUnavailable') && !ON_UNAVAILABLE.includes(onUnavailable as OnUnavailable)) {
    problems.add('system.onUnavailable', `one of ${ON_UNAVAILABLE.join(', ')}`, onUnavailable);
  }
  return {
    ...(fields.has('limits') ? { limits: readLimits(problems, 'system.limits', fields.get('limits')) } : {}),
    ...(onUnavailable === undefined ? {} : { onUnavailable }),
  };
}

/** A resource, or the limits of an entity: `{ limits: [...] }`. */
function readLevel(problems: Problems, path: string, value: unknown): readonly Limit[] {
  const before = problems.found.length;
  const fields = readFields(problems, path, value, ['limits']);
  if (fields.has('limits')) return readLimits(problems, joinPath(path, 'limits'), fields.get('limits'));
  if (problems.found.length === before) problems.add(path, 'an object with `limits`', value);
  return [];
}

function readLimits(problems: Problems, path: string, value: unknown): readonly Limit[] {
  if (!Array.isArray(value) || value.length === 0) {
    problems.add(path, 'a list of at least one limit, such as ["rpm:100/min"]', value);
    return [];
  }
  const limits = new Map<string, Limit>();
  for (const [at, text] of (value as readonly unknown[]).entries()) {
    const place = joinPath(path, at);
    const limit = readLimit(problems, place, text);
    if (limit === undefined) continue;
    if (limits.has(limit.name)) problems.add(place, `without a second limit named ${limit.name}`, text);
    limits.set(limit.name, limit);
  }
  if (limits.size > MAX_LIMITS) problems.add(path, `at most ${MAX_LIMITS} limits`, limits.size);
  return [...limits.values()];
}

function readLimit(problems: Problems, path: string, text: unknown): Limit | undefined {
  try {
    return Limit.parse(text as string);
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    const { field, expected } = error;
    // A field such as `rpm.capacity` means that the limit could be read and this part is out of range.
    problems.add(path, field.includes('.') ? `a limit whose ${field} is ${expected}` : expected, text);
    return undefined;
  }
}

const ENTITY_FIELDS = ['name', 'parent', 'cascade', 'bypass', 'metadata', 'paused', 'default', 'resources'] as const;

function readEntity(problems: Problems, path: string, value: unknown): EntityWish {
  if (value === null) return { record: {}, limits: null, resources: new Map() };
  const fields = readFields(problems, path, value, ENTITY_FIELDS);
  const at = (field: string): string => joinPath(path, field);
  const [name, parent, cascade] = [fields.get('name'), fields.get('parent'), fields.get('cascade')];
  if (fields.has('name') && (typeof name !== 'string' || name.length > MAX_ENTITY_NAME)) {
    problems.add(at('name'), `text of at most ${MAX_ENTITY_NAME} characters`, name);
  }
  if (fields.has('parent')) problems.try(at('parent'), parent, () => checkEntityId(parent));
  if (fields.has('cascade') && typeof cascade !== 'boolean') problems.add(at('cascade'), 'true or false', cascade);
  const bypass = fields.get('bypass');
  if (fields.has('bypass') && typeof bypass !== 'boolean') problems.add(at('bypass'), 'true or false', bypass);
  const metadata = fields.has('metadata') ? readJsonData(problems, at('metadata'), fields.get('metadata')) : undefined;
  if (metadata !== undefined && !plainObject(metadata)) problems.add(at('metadata'), 'an object', metadata);
  const paused = fields.has('paused') ? readPause(problems, at('paused'), fields.get('paused')) : undefined;
  const resources = readMap(problems, at('resources'), fields.get('resources'), checkResource, readLevel);
  if (fields.has('resources') && resources.size === 0) {
    problems.add(at('resources'), 'an object with at least one resource, or left out', fields.get('resources'));
  }
  const record = Object.fromEntries(
    Object.entries({ name, parent, cascade, bypass, metadata, paused }).filter(([, given]) => given !== undefined),
  );
  return {
    record: fields.size > 0 && Object.keys(record).length === 0 ? null : record,
    limits: fields.has('default') ? readLevel(problems, at('default'), fields.get('default')) : null,
    resources,
  };
}

/** Instants in UTC: the store returns the same text. A file whose text changes with every apply would never be unchanged. */
const UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?Z$/;

function readPause(problems: Problems, path: string, value: unknown): PauseData | null {
  if (value === false) return null;
  const fields = readFields(problems, path, value, ['until', 'reason']);
  const reason = fields.get('reason');
  if (plainObject(value)) problems.try(joinPath(path, 'reason'), reason, () => checkReason(reason));
  if (typeof reason !== 'string') return null;
  if (!fields.has('until')) return { reason };
  const until = fields.get('until');
  const endMs = typeof until === 'string' && UTC.test(until) ? Date.parse(until) : Number.NaN;
  if (Number.isNaN(endMs)) {
    problems.add(joinPath(path, 'until'), 'an instant in UTC such as "2027-01-31T10:00:00Z"', until);
    return null;
  }
  return encodePause({ endMs, reason });
}

/** Checks only parents within the file. The plan checks parents that exist only in the store. */
function checkParents(problems: Problems, entities: ReadonlyMap<string, EntityWish>): void {
  const parentOf = (id: string): string | null => entities.get(id)?.record?.parent ?? null;
  const depths = measureDepths(entities.keys(), parentOf);
  for (const id of entities.keys()) {
    const parent = parentOf(id);
    const depth = depths.get(id) ?? 1;
    const path = joinPath(joinPath('entities', id), 'parent');
    if (parent === id) problems.add(path, 'another entity', parent);
    else if (depth === Number.POSITIVE_INFINITY) problems.add(path, 'above the entity, not below it', parent);
    else if (depth > MAX_CHAIN) problems.add(path, `at the end of at most ${MAX_CHAIN} levels`, parent);
  }
}

/** The inverse of `readManifest`. */
export function writeManifest({ namespace, system, resources, entities }: Manifest): ManifestData {
  return {
    namespace,
    ...(system === null ? {} : { system: writeSystem(system) }),
    ...(resources.size === 0 ? {} : { resources: writeLevels(resources) }),
    ...(entities.size === 0 ? {} : { entities: fromEntries(entities, writeEntity) }),
  };
}

function writeSystem({ limits, onUnavailable }: SystemWish): NonNullable<ManifestData['system']> {
  return {
    ...(onUnavailable === undefined ? {} : { onUnavailable }),
    ...(limits === undefined ? {} : { limits: limits.map(String) }),
  };
}

function writeEntity({ record, limits, resources }: EntityWish): ManifestEntity {
  const { paused, ...fields } = record ?? {};
  return {
    ...fields,
    ...(paused === undefined ? {} : { paused: paused ?? false }),
    ...(limits === null ? {} : { default: { limits: limits.map(String) } }),
    ...(resources.size === 0 ? {} : { resources: writeLevels(resources) }),
  };
}

function writeLevels(levels: ReadonlyMap<string, readonly Limit[]>): Readonly<Record<string, ManifestLimits>> {
  return fromEntries(levels, (limits) => ({ limits: limits.map(String) }));
}

/** Handles the name `__proto__`, which an assignment would not store as a field. */
function fromEntries<T, U>(map: ReadonlyMap<string, T>, write: (value: T) => U): Readonly<Record<string, U>> {
  return Object.fromEntries([...map].map(([name, value]) => [name, write(value)]));
}
