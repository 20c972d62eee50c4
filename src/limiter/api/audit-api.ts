import type { AuditAction, AuditRecord, Awaitable } from '../../backend.js';
import { ValidationError } from '../../core/errors.js';
import { checkEntityId, checkNamespace, checkResource } from '../../core/identifiers.js';
import { callStore, type Context } from '../context.js';
import { type Listing, listing, type ListOptions } from './listing.js';

/**
 * Selects the changes of one entity and its limits, of a resource, of the system, or of a namespace itself. Default: all
 * changes in this namespace.
 */
export interface AuditQuery extends ListOptions {
  readonly entityId?: string;
  readonly resource?: string;
  readonly system?: boolean;
  readonly namespace?: string;
  /** `desc`: the newest first. Default: `asc`, the oldest first. */
  readonly order?: 'asc' | 'desc';
}

/** One administrative change: who made it, and the values before and after. */
export interface AuditEvent {
  readonly id: string;
  readonly at: Date;
  readonly principal: string | null;
  readonly action: AuditAction;
  /** An entity id, `$SYSTEM`, `$RESOURCE:{name}` or `$NAMESPACE:{name}`. */
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
}

/** `limiter.audit`: the administrative changes of a namespace. */
export class AuditApi {
  readonly #context: () => Awaitable<Context>;

  constructor(context: () => Awaitable<Context>) {
    this.#context = context;
  }

  /** In the order of time, or with `order: 'desc'` in its reverse. */
  list(query: AuditQuery = {}): Listing<AuditEvent> {
    return listing(query, viewOf, async (asked) => {
      const subject = subjectOf(query);
      // An empty cursor is before every record, in either order.
      const page = { ...asked, after: asked.after || null, isDescending: isDescending(query) };
      const context = await this.#context();
      const { namespace } = query;
      return callStore(context, 'reading the audit', (call) =>
        namespace === undefined
          ? context.backend.audit.list(call, subject, page)
          : context.backend.namespaces.audit(call, namespace, page),
      );
    });
  }
}

function isDescending({ order = 'asc' }: AuditQuery): boolean {
  if (order !== 'asc' && order !== 'desc') throw new ValidationError('order', `'asc' or 'desc'`, order);
  return order === 'desc';
}

function subjectOf({ entityId, resource, system, namespace }: AuditQuery): string | null {
  if (namespace !== undefined) checkNamespace(namespace);
  if (entityId !== undefined) {
    checkEntityId(entityId);
    return entityId;
  }
  if (resource !== undefined) {
    checkResource(resource);
    return `$RESOURCE:${resource}`;
  }
  return system === true ? '$SYSTEM' : null;
}

function viewOf({ atMs, ...record }: AuditRecord): AuditEvent {
  return { ...record, at: new Date(atMs) };
}
