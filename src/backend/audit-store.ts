import type { EpochMs } from '../core/units.js';
import type { Awaitable, Call, Page, PageRequest } from './call.js';

/** The kinds of administrative changes. */
export type AuditAction =
  | 'entity.create'
  | 'entity.update'
  | 'entity.delete'
  | 'entity.pause'
  | 'entity.resume'
  | 'config.set'
  | 'config.delete'
  | 'bucket.reset'
  | 'bucket.pause'
  | 'bucket.resume'
  | 'lease.release'
  | 'namespace.register'
  | 'namespace.delete'
  | 'namespace.recover'
  | 'namespace.purge';

/** One administrative change, as a store keeps it. */
export interface AuditRecord {
  readonly id: string;
  readonly atMs: EpochMs;
  readonly principal: string | null;
  readonly action: AuditAction;
  /** An entity id, `$SYSTEM`, `$RESOURCE:{name}` or `$NAMESPACE:{name}`. */
  readonly subject: string;
  /** Plain data; null where there was nothing. */
  readonly before: unknown;
  readonly after: unknown;
}

/** Which page of audit records to read. */
export interface AuditPageRequest extends PageRequest {
  /** The newest record first; `after` then names the oldest record of the previous page. Left out: the oldest first. */
  readonly isDescending?: boolean;
}

/** The audit records of a namespace. Each is written together with the change that it describes. */
export interface AuditStore {
  /** In the order of time or its reverse, for one subject; null: for all subjects. */
  list(call: Call, subject: string | null, page: AuditPageRequest): Awaitable<Page<AuditRecord>>;
}
