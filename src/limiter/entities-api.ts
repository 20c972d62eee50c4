import type { Awaitable, EntityRecord } from '../backend.js';
import { ValidationError } from '../core/errors.js';
import { checkEntityId } from '../core/identifiers.js';
import { callStore, type Context } from './context.js';

export interface NewEntity {
  readonly id: string;
  readonly name?: string;
  readonly parentId?: string;
  /** Whether what this entity spends also counts for its parent. */
  readonly cascade?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface Entity extends Omit<EntityRecord, 'createdAtMs'> {
  readonly createdAt: Date;
}

/** Who spends. An acquire needs no record of an entity; a parent or metadata does. */
export class EntitiesApi {
  readonly #context: () => Awaitable<Context>;

  constructor(context: () => Awaitable<Context>) {
    this.#context = context;
  }

  async create(entity: NewEntity): Promise<Entity> {
    if (typeof entity !== 'object' || entity === null) throw new ValidationError('entity', 'an object', entity);
    checkEntityId(entity.id, 'id');
    if (entity.parentId !== undefined) checkEntityId(entity.parentId, 'parentId');
    checkType('name', entity.name, 'string');
    checkType('cascade', entity.cascade, 'boolean');
    checkType('metadata', entity.metadata, 'object');
    const context = await this.#context();
    const { id, name = null, parentId = null, cascade = false, metadata = {} } = entity;
    const record = await callStore(context, 'creating an entity', (call) =>
      context.backend.entities.create(call, { id, name, parentId, cascade, metadata }),
    );
    context.resolver.cache.clear();
    return viewOf(record);
  }

  /** The entity, or null if there is no record of it. */
  async get(id: string): Promise<Entity | null> {
    checkEntityId(id, 'id');
    const context = await this.#context();
    const record = await callStore(context, 'reading an entity', (call) => context.backend.entities.read(call, id));
    return record === undefined ? null : viewOf(record);
  }
}

function checkType(field: string, value: unknown, type: 'string' | 'boolean' | 'object'): void {
  if (value === undefined || (typeof value === type && value !== null)) return;
  throw new ValidationError(field, type === 'object' ? 'an object' : `a ${type}`, value);
}

function viewOf({ createdAtMs, ...entity }: EntityRecord): Entity {
  return { ...entity, createdAt: new Date(createdAtMs) };
}
