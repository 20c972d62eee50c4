import type { Pause, PauseChange } from '../core/pause.js';
import type { EpochMs } from '../core/units.js';
import type { AdminCall, Awaitable, Call, Page, PageRequest } from './call.js';

/** An entity, as a store keeps it. */
export interface EntityRecord {
  readonly id: string;
  readonly name: string | null;
  readonly parentId: string | null;
  readonly cascade: boolean;
  /** All limits of the entity's own level are shadows. Left out: they are as configured. */
  readonly bypass?: true;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly createdAtMs: EpochMs;
  readonly version: number;
  /** Stops the asks of the entity on every resource. Left out if there is none. It may have ended. */
  readonly pause?: Pause;
}

/** The records of entities. */
export interface EntityStore {
  /** Rejects if the entity exists or its parent does not. */
  create(call: AdminCall, entity: Omit<EntityRecord, 'createdAtMs' | 'version'>): Awaitable<EntityRecord>;
  /** The record of one entity; undefined if there is none. */
  read(call: Call, id: string): Awaitable<EntityRecord | undefined>;
  /** At most `MAX_READ` entities. Each result is consistent with the last write, in the order of `ids`. */
  readMany(call: Call, ids: readonly string[]): Awaitable<readonly (EntityRecord | undefined)[]>;
  /** Rejects if the entity is missing or has another version than `seenVersion`. */
  update(call: AdminCall, id: string, change: EntityChange, seenVersion: number | null): Awaitable<EntityRecord>;
  /**
   * Rejects if the entity is missing, has children, or has another version than `seenVersion`. Without `seenVersion` also
   * while it is paused: a caller that names the version has seen the pause. Its buckets and usage stay until they expire.
   */
  delete(call: AdminCall, id: string, seenVersion?: number | null): Awaitable<void>;
  /**
   * Pauses the entity until the later of the stored and the given end, or ends its pause (null). A missing entity is created,
   * to be paused.
   */
  pause(call: AdminCall, id: string, pause: Pause | null): Awaitable<PauseChange>;
  /** All entities. */
  list(call: Call, page: PageRequest): Awaitable<Page<EntityRecord>>;
  /** The entities whose parent this is. */
  children(call: Call, parentId: string, page: PageRequest): Awaitable<Page<EntityRecord>>;
}

/** undefined: the field stays. */
export interface EntityChange {
  readonly name?: string | null;
  readonly parentId?: string | null;
  readonly cascade?: boolean;
  readonly bypass?: boolean;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Replaces the stored pause, also by one with an earlier end. null: removes it. */
  readonly pause?: Pause | null;
}
