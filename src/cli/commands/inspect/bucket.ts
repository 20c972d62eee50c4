import { hasBalance } from '../../../core/limit-kind.js';
import { HeadgateError } from '../../../core/errors.js';
import type { BucketView } from '../../../limiter/api/buckets-api.js';
import { formatCount } from '../../../visualize/format.js';
import { drawFields, drawTable } from '../../../visualize/table.js';
import {
  addExamples,
  addPaging,
  addVerb,
  type Definition,
  onStore,
  type StoreAction,
} from '../../run/define-command.js';
import { moreLine, type PagingOptions, readList } from '../../arguments/paging.js';
import type { Result } from '../../run/result.js';
import type { Style } from '../../terminal/terminal.js';
import { pausedField, pauseShape } from '../manage/pause-view.js';
import type { LimitText, ListShape, PauseShape } from '../../run/common-shapes.js';

/** `--json`: items of `bucket list`; `available` is null for an unlimited limit */
export interface BucketShape {
  readonly entityId: string;
  readonly resource: string;
  readonly limits: readonly {
    readonly limit: LimitText;
    readonly available: number | null;
    readonly consumed: number;
  }[];
  readonly holders: number;
  readonly acquires: number;
  readonly expired: number;
  /** The pause of this bucket. null: only a pause of its entity or of a parent can stop it. */
  readonly paused: PauseShape | null;
}

/** `--json` of `bucket show` */
export interface BucketViewShape {
  /** null: there is no bucket, because nothing was taken or it was full for long: all limits are full. */
  readonly bucket: BucketShape | null;
}

/** `--json` of `bucket reset` */
export interface ResetShape {
  /** false: there is no bucket, so that all limits are full. */
  readonly reset: boolean;
}

export const define: Definition = (bucket, context) => {
  addExamples(bucket, ['bucket show user-1 gpt-4']);
  addVerb(bucket, {
    usage: 'show <entity> <resource>',
    summary: 'Show a bucket',
    examples: ['bucket show user-1 gpt-4'],
  }).action(onStore(context, showBucket));
  addPaging(
    addVerb(bucket, {
      usage: 'list',
      summary: 'List the buckets of an entity, or of a resource',
      examples: ['bucket list --entity user-1', 'bucket list --resource gpt-4 --all'],
    }),
  )
    .option('--entity <entity>', 'list the buckets of this entity')
    .option('--resource <resource>', 'list the buckets of this resource')
    .action(onStore(context, listBuckets));
  addVerb(bucket, {
    usage: 'reset <entity> <resource>',
    summary: 'Fill a bucket, and take back all slots that are held',
    examples: ['bucket reset user-1 gpt-4 --yes'],
  }).action(onStore(context, resetBucket));
};

const showBucket: StoreAction = async (
  { limiter },
  [entityId = '', resource = ''],
): Promise<Result<BucketViewShape>> => {
  const view = await limiter.buckets.get({ entityId, resource });
  const bucket = view === null ? null : shapeOf(view);
  return {
    data: { bucket },
    text: (style) =>
      bucket === null
        ? `${entityId} has no bucket on ${resource}: nothing was taken, so all limits are full.`
        : render(bucket, style),
  };
};

const listBuckets: StoreAction<PagingOptions & { readonly entity?: string; readonly resource?: string }> = async (
  session,
  _,
  { entity, resource, ...paging },
) => {
  const query = queryOf(entity, resource);
  const data = await readList(session, paging, (page) => session.limiter.buckets.list({ ...query, ...page }), shapeOf);
  return { data, text: (style) => (data.items.length === 0 ? 'No buckets.' : renderList(data, style)) };
};

function queryOf(entity: string | undefined, resource: string | undefined) {
  if (entity !== undefined && resource === undefined) return { entityId: entity };
  if (resource !== undefined && entity === undefined) return { resource };
  throw new HeadgateError('input.invalid', 'Name either --entity or --resource; `headgate bucket show` takes both');
}

const resetBucket: StoreAction = async (
  { limiter, confirm },
  [entityId = '', resource = ''],
): Promise<Result<ResetShape>> => {
  const bucket = await limiter.buckets.get({ entityId, resource });
  if (bucket === null) {
    return { data: { reset: false }, text: () => `${entityId} has no bucket on ${resource}: all limits are full.` };
  }
  const holders = bucket.holders === 0 ? '' : `, and takes back what its leases hold (${bucket.holders} now)`;
  await confirm(`fills the bucket of ${entityId} on ${resource}${holders}`);
  const reset = await limiter.buckets.reset({ entityId, resource });
  return {
    data: { reset },
    text: (style) => `${style.green('reset')}: all limits of ${entityId} on ${resource} are full`,
  };
};

function shapeOf({ entityId, resource, limits, holders, acquires, expired, paused }: BucketView): BucketShape {
  return {
    entityId,
    resource,
    limits: limits.map(({ limit, available, consumed }) => ({
      limit: String(limit),
      // JSON has no Infinity.
      available: hasBalance(limit.kind) ? available : null,
      consumed,
    })),
    holders,
    acquires,
    expired,
    paused: pauseShape(paused, new Date()),
  };
}

function render({ entityId, resource, limits, holders, acquires, expired, paused }: BucketShape, style: Style): string {
  const fields = drawFields([
    ['entity', entityId],
    ['resource', resource],
    ['grants', formatCount(acquires)],
    ['leases', `${formatCount(holders)} held, ${formatCount(expired)} expired so far`],
    ...pausedField(paused),
  ]);
  const rows = limits.map((limit) => [limit.limit, leftCell(limit.available, style), limit.consumed]);
  return `${fields}\n\n${drawTable(['LIMIT', 'LEFT', 'CONSUMED'], rows, style.width)}`;
}

function renderList(list: ListShape<BucketShape>, style: Style): string {
  const rows = list.items.flatMap(({ entityId, resource, limits, holders }) =>
    limits.map(({ limit, available, consumed }, at) => [
      at === 0 ? entityId : '',
      at === 0 ? resource : '',
      limit,
      leftCell(available, style),
      consumed,
      at === 0 ? holders : '',
    ]),
  );
  return (
    drawTable(['ENTITY', 'RESOURCE', 'LIMIT', 'LEFT', 'CONSUMED', 'LEASES'], rows, style.width) + moreLine(list, style)
  );
}

function leftCell(available: number | null, style: Style) {
  if (available === null) return '';
  return { value: available, paint: available <= 0 ? style.red : (text: string) => text };
}
