import { HeadgateError } from '../../../core/errors.js';
import { checkWhole } from '../../../core/limit.js';
import type { AuditEvent, AuditQuery } from '../../../limiter/api/audit-api.js';
import { formatInstant } from '../../../visualize/format.js';
import { drawTable } from '../../../visualize/table.js';
import {
  addExamples,
  addPaging,
  addVerb,
  type Definition,
  onStore,
  type StoreAction,
} from '../../run/define-command.js';
import { moreLine, type PagingOptions, readList } from '../../arguments/paging.js';
import { parseWhole } from '../../arguments/parse.js';
import type { Session } from '../../run/session.js';
import type { Style } from '../../terminal/terminal.js';
import type { Instant, ListShape } from '../../run/common-shapes.js';

/** `--json`: items of `audit list` */
export interface AuditShape {
  readonly id: string;
  readonly at: Instant;
  readonly principal: string | null;
  readonly action: string;
  readonly subject: string;
  readonly before: unknown;
  readonly after: unknown;
}

export const define: Definition = (audit, context) => {
  addExamples(audit, ['audit list --last 20']);
  addPaging(
    addVerb(audit, {
      usage: 'list [entity]',
      summary: 'List changes from the oldest to the newest: of an entity and its limits, or all of them',
      examples: ['audit list --last 20', 'audit list user-1', 'audit list --resource gpt-4', 'audit list --system'],
    }),
  )
    .option('--system', 'only changes of the limits of the system')
    .option('--resource <resource>', 'only changes of the limits of a resource')
    .option('--namespace-registry <name>', 'changes of a namespace itself: created, deleted, recovered, purged')
    .option('--last <count>', 'only the newest changes')
    .action(onStore(context, listAudit));
};

interface AuditOptions extends PagingOptions {
  readonly system?: boolean;
  readonly resource?: string;
  readonly namespaceRegistry?: string;
  readonly last?: string;
}

const listAudit: StoreAction<AuditOptions> = async (session, [entityId], options) => {
  const query = queryOf(entityId, options);
  const data =
    options.last === undefined
      ? await readList(session, options, (page) => session.limiter.audit.list({ ...query, ...page }), shapeOf)
      : await readLast(session, query, options);
  return { data, text: (style) => render(data, style) };
};

function queryOf(entityId: string | undefined, { system, resource, namespaceRegistry }: AuditOptions): AuditQuery {
  const query: AuditQuery = {
    ...(entityId === undefined ? {} : { entityId }),
    ...(system === true ? { system } : {}),
    ...(resource === undefined ? {} : { resource }),
    ...(namespaceRegistry === undefined ? {} : { namespace: namespaceRegistry }),
  };
  if (Object.keys(query).length > 1) {
    throw new HeadgateError(
      'input.invalid',
      'Name only one of these: an entity, --system, --resource or --namespace-registry',
    );
  }
  return query;
}

async function readLast(
  { limiter }: Session,
  query: AuditQuery,
  { last = '', limit, after, all }: AuditOptions,
): Promise<ListShape<AuditShape>> {
  if (limit !== undefined || after !== undefined || all === true) {
    throw new HeadgateError('input.invalid', '--last cannot be combined with --limit, --after or --all');
  }
  const count = parseWhole('--last', last);
  checkWhole('--last', count, 1, 1_000);
  const { items } = await limiter.audit.list({ ...query, limit: count, order: 'desc' });
  return { items: items.map(shapeOf).toReversed(), next: null };
}

function shapeOf({ id, at, principal, action, subject, before, after }: AuditEvent): AuditShape {
  return { id, at: at.toISOString(), principal, action, subject, before, after };
}

function render(list: ListShape<AuditShape>, style: Style): string {
  if (list.items.length === 0) return 'No changes.';
  const rows = list.items.map(({ at, principal, action, subject, before, after }) => [
    formatInstant(new Date(at)),
    principal ?? '-',
    action,
    subject,
    describeChange(before, after),
  ]);
  return drawTable(['AT', 'WHO', 'ACTION', 'OF', 'CHANGE'], rows, style.width) + moreLine(list, style);
}

/** The fields that differ, each with its old and its new value. */
function describeChange(before: unknown, after: unknown): string {
  const was = fieldsOf(before);
  const is = fieldsOf(after);
  const names = [...new Set([...Object.keys(was), ...Object.keys(is)])];
  const changes = names
    .filter((name) => JSON.stringify(was[name]) !== JSON.stringify(is[name]) && !BOOKKEEPING.has(name))
    .filter((name) => !(before === null && isDefault(is[name])))
    .map((name) => {
      if (was[name] === undefined) return `${name} ${valueText(is[name])}`;
      if (is[name] === undefined) return `${name} was ${valueText(was[name])}`;
      return `${name} ${valueText(was[name])} -> ${valueText(is[name])}`;
    });
  const on = typeof is['resource'] === 'string' && is['resource'] === was['resource'] ? [`on ${is['resource']}`] : [];
  return [...on, ...changes].join('; ');
}

/** Fields that differ after every change. */
const BOOKKEEPING = new Set(['version', 'createdAtMs', 'id']);

/** Whether the value is the default of a new record. */
function isDefault(value: unknown): boolean {
  return value === null || value === false || JSON.stringify(value) === '{}';
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? 'none' : value.map(valueText).join(' ');
  if (isOldLimit(value)) return oldLimitText(value);
  return typeof value === 'string' ? value : JSON.stringify(value);
}

interface OldLimit {
  readonly name: string;
  readonly capacity: number;
  readonly burst?: number;
  readonly refill_amount: number;
  readonly refill_period_seconds: number;
}

/** A limit in a migrated audit record has the format of the old client. */
function isOldLimit(value: unknown): value is OldLimit {
  const { name, capacity, refill_amount: amount, refill_period_seconds: seconds } = fieldsOf(value);
  return typeof name === 'string' && [capacity, amount, seconds].every((number) => typeof number === 'number');
}

function oldLimitText({ name, capacity, burst = capacity, refill_amount: amount, refill_period_seconds }: OldLimit) {
  return `${name}:${amount}/${refill_period_seconds}s${burst === amount ? '' : `:${burst}`}`;
}
