import type {
  AdminCall,
  Awaitable,
  Call,
  EntityChange,
  EntityRecord,
  EntityStore,
  Page,
  PageRequest,
} from '../../backend.js';
import { ValidationError } from '../../core/errors.js';
import { checkEntityId, MAX_ENTITY_NAME } from '../../core/identifiers.js';
import { levelsOf, MAX_LEVELS } from '../../core/json-levels.js';
import { checkKnownFields } from '../../core/known-fields.js';
import { checkWhole } from '../../core/limit.js';
import { type PauseView, viewPause } from '../../core/pause.js';
import { callStore, changeStore, type Context } from '../context.js';
import { type Listing, listing, type ListOptions } from './listing.js';

/** An entity to create. */
export interface NewEntity {
  readonly id: string;
  readonly name?: string;
  readonly parentId?: string;
  /** Whether what this entity spends also counts for its parent. */
  readonly cascade?: boolean;
  /** Whether all limits of this entity's own level are shadows: they report what they would refuse, and refuse nothing. */
  readonly bypass?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** The record of an entity. */
export interface Entity extends Omit<EntityRecord, 'createdAtMs' | 'pause'> {
  readonly createdAt: Date;
  /** The stored pause, which may have ended. Left out if there is none. */
  readonly paused?: PauseView;
}

/** A field that is left out stays; null removes it. */
export interface EntityUpdate {
  readonly name?: string | null;
  readonly parentId?: string | null;
  readonly cascade?: boolean;
  readonly bypass?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** The version that the caller saw. If the entity has another version, nothing is changed. */
  readonly version?: number;
}

/** Records of entities. An acquire needs no record; a parent or metadata does. */
export class EntitiesApi {
  readonly #context: () => Awaitable<Context>;

  constructor(context: () => Awaitable<Context>) {
    this.#context = context;
  }

  /** Creates the record of an entity. Rejects with `EntityExists` if there is one. */
  async create(entity: NewEntity): Promise<Entity> {
    checkObject('entity', entity, NEW_FIELDS);
    checkEntityId(entity.id, 'id');
    checkFields(entity);
    const { id, name = null, parentId = null, cascade = false, bypass = false, metadata = {} } = entity;
    refuseCascadeWithoutParent(cascade, parentId);
    return this.#change('creating an entity', (store, call) =>
      store.create(call, {
        id,
        name,
        parentId,
        cascade,
        ...(bypass ? { bypass } : {}),
        metadata: plainMetadata(metadata),
      }),
    );
  }

  /** The entity; null if it has no record. */
  async get(id: string): Promise<Entity | null> {
    checkEntityId(id, 'id');
    const context = await this.#context();
    const record = await callStore(context, 'reading an entity', (call) => context.backend.entities.read(call, id));
    return record === undefined ? null : viewOf(record);
  }

  /** Changes the given fields. With `version`, only if the entity still has that version. */
  async update(id: string, update: EntityUpdate): Promise<Entity> {
    checkEntityId(id, 'id');
    checkObject('update', update, UPDATE_FIELDS);
    checkFields(update);
    const { version, ...fields } = update;
    if (version !== undefined) checkWhole('version', version, 1, Number.MAX_SAFE_INTEGER);
    const known = Object.entries(fields).filter(([, value]) => value !== undefined);
    const given: EntityChange = Object.fromEntries(known);
    if (given.cascade === true) {
      refuseCascadeWithoutParent(true, given.parentId === undefined ? await this.#parentOf(id) : given.parentId);
    }
    const change = given.metadata === undefined ? given : { ...given, metadata: plainMetadata(given.metadata) };
    return this.#change('updating an entity', (store, call) => store.update(call, id, change, version ?? null));
  }

  /** Undefined for an entity without a record, which the update itself refuses. */
  async #parentOf(id: string): Promise<string | null | undefined> {
    const entity = await this.get(id);
    return entity === null ? undefined : entity.parentId;
  }

  /** Rejects while the entity has children, or is paused. Its buckets and its usage stay until they expire. */
  async delete(id: string): Promise<void> {
    checkEntityId(id, 'id');
    await this.#write('deleting an entity', (store, call) => store.delete(call, id));
  }

  /** All entities that have a record. */
  list(options: ListOptions = {}): Listing<Entity> {
    return this.#list(options, (store, call, page) => store.list(call, page));
  }

  /** The entities whose parent this is. */
  children(id: string, options: ListOptions = {}): Listing<Entity> {
    return this.#list(options, (store, call, page) => {
      checkEntityId(id, 'id');
      return store.children(call, id, page);
    });
  }

  async #change(
    where: string,
    start: (store: EntityStore, call: AdminCall) => Awaitable<EntityRecord>,
  ): Promise<Entity> {
    return viewOf(await this.#write(where, start));
  }

  async #write<T>(where: string, start: (store: EntityStore, call: AdminCall) => Awaitable<T>): Promise<T> {
    const context = await this.#context();
    try {
      return await changeStore(context, where, (call) => start(context.backend.entities, call));
    } finally {
      // Parents are cached with the configs. The next cascade must see the change, also one that got no answer.
      context.resolver.cache.outdate();
    }
  }

  #list(
    options: ListOptions,
    start: (store: EntityStore, call: Call, page: PageRequest) => Awaitable<Page<EntityRecord>>,
  ): Listing<Entity> {
    return listing(options, viewOf, async (page) => {
      const context = await this.#context();
      return callStore(context, 'listing entities', (call) => start(context.backend.entities, call, page));
    });
  }
}

const CHANGEABLE = new Set(['name', 'parentId', 'cascade', 'bypass', 'metadata']);
const NEW_FIELDS = new Set([...CHANGEABLE, 'id']);
const UPDATE_FIELDS = new Set([...CHANGEABLE, 'version']);

function checkObject(field: string, value: unknown, known: ReadonlySet<string>): void {
  if (typeof value !== 'object' || value === null) throw new ValidationError(field, 'an object', value);
  checkKnownFields(field, value, known);
}

/** `cascade` charges the parent. Without a parent it would have no effect, and the caller would not notice. */
function refuseCascadeWithoutParent(cascade: boolean, parentId: string | null | undefined): void {
  if (cascade && parentId === null)
    throw new ValidationError('cascade', 'false for an entity without a parent', cascade);
}

function checkFields({ name, parentId, cascade, bypass, metadata }: EntityUpdate): void {
  if (parentId !== undefined && parentId !== null) checkEntityId(parentId, 'parentId');
  if (name !== null) checkType('name', name, 'string');
  if (typeof name === 'string' && name.length > MAX_ENTITY_NAME) {
    throw new ValidationError('name', `a string of at most ${MAX_ENTITY_NAME} characters`, name);
  }
  checkType('cascade', cascade, 'boolean');
  checkType('bypass', bypass, 'boolean');
  checkType('metadata', metadata, 'object');
}

function checkType(field: string, value: unknown, type: 'string' | 'boolean' | 'object'): void {
  if (value === undefined || (typeof value === type && value !== null && !Array.isArray(value))) return;
  throw new ValidationError(field, type === 'object' ? 'an object' : `a ${type}`, value);
}

/** A JSON copy: every store must return the same metadata, and later changes of the caller's object must not affect it. */
function plainMetadata(metadata: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  let copy: Readonly<Record<string, unknown>>;
  try {
    copy = JSON.parse(JSON.stringify(metadata)) as typeof copy;
  } catch (error) {
    throw new ValidationError('metadata', 'plain data that JSON can hold', String(error));
  }
  // Checked again: a Date, for example, is an object before and text after.
  checkType('metadata', copy, 'object');
  const levels = levelsOf(copy);
  if (levels > MAX_LEVELS) throw new ValidationError('metadata', `at most ${MAX_LEVELS} levels deep`, levels);
  return copy;
}

function viewOf({ createdAtMs, pause, ...entity }: EntityRecord): Entity {
  const paused = pause === undefined ? {} : { paused: viewPause(pause) };
  return { ...entity, createdAt: new Date(createdAtMs), ...paused };
}
