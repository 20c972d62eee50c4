import { type Command, Option } from 'commander';
import { parseDynamoDBAddress } from '../../../backends/dynamodb/address.js';
import { wholeTokens } from '../../../core/bucket/decide.js';
import { ValidationError } from '../../../core/errors.js';
import { USAGE_WINDOWS, type UsageWindow } from '../../../core/usage/usage.js';
import type { Usage, UsageRange } from '../../../limiter/api/usage-api.js';
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
import { parseInstant } from '../../arguments/parse.js';
import { requireDynamoDB } from '../../run/require-dynamodb.js';
import type { Session } from '../../run/session.js';
import type { Style } from '../../terminal/terminal.js';
import { readSeries, renderPlot, windowLabel, windowStarts } from './usage-plot.js';
import type { UsagePlotShape, UsageRebuildShape, UsageShape, UsageSummaryShape } from './usage-shapes.js';
import type { ListShape } from '../../run/common-shapes.js';

export const define: Definition = (usage, context) => {
  addExamples(usage, ['usage plot gpt-4 --from 12hour']);
  const list = addVerb(usage, {
    usage: 'list <resource>',
    summary: 'List usage by entity and window',
    examples: ['usage list gpt-4 --window daily --from 2027-01-01 --to 2027-02-01', 'usage list gpt-4 --entity user-1'],
  });
  addPaging(addRange(list)).action(onStore(context, listUsage));
  const summary = addVerb(usage, {
    usage: 'summary <resource>',
    summary: 'Show the sum and the average of usage over a time range',
    examples: ['usage summary gpt-4 --window daily --from 30day', 'usage summary gpt-4 --entity user-1'],
  });
  addRange(summary).action(onStore(context, summarizeUsage));
  const plot = addVerb(usage, {
    usage: 'plot <resource>',
    summary: 'Draw usage over time',
    examples: ['usage plot gpt-4', 'usage plot gpt-4 --entity user-1 --window daily --from 30day --only tpm --table'],
  });
  addRange(plot)
    .option('--only <limit>', 'only this limit, or only "acquires"')
    .option('--table', 'print a table instead of bars')
    .action(onStore(context, plotUsage));
  addVerb(usage, {
    usage: 'rebuild <entity> <resource>',
    summary: 'Add what the change stream lost to the current usage windows (DynamoDB)',
    examples: ['usage rebuild user-1 gpt-4 --store dynamodb://limits'],
  }).action(onStore(context, rebuildUsageOf));
};

function addRange(command: Command): Command {
  return command
    .option('--entity <entity>', 'only this entity; by default all entities, parents as well as children')
    .addOption(new Option('--window <window>', 'the length of a window').choices(USAGE_WINDOWS).default('hourly'))
    .option(
      '--from <time>',
      'windows that start at or after this time: 2027-01-31, 2027-01-31T10:00 (UTC) or 6hour ago',
    )
    .option('--to <time>', 'windows that start before this time');
}

interface RangeOptions {
  readonly entity?: string;
  readonly window: UsageWindow;
  readonly from?: string;
  readonly to?: string;
}

function rangeOf(resource: string, options: RangeOptions, now: Date): UsageRange {
  const { entity, window } = options;
  const from = options.from === undefined ? undefined : parseInstant('--from', options.from, now);
  const to = options.to === undefined ? undefined : parseInstant('--to', options.to, now);
  if (from !== undefined && to !== undefined && to <= from) {
    throw new ValidationError('--to', 'later than --from', options.to);
  }
  return {
    resource,
    window,
    ...(entity === undefined ? {} : { entityId: entity }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  };
}

const listUsage: StoreAction<RangeOptions & PagingOptions> = async (session, [resource = ''], options) => {
  const range = rangeOf(resource, options, new Date());
  const data = await readList(session, options, (page) => session.limiter.usage.query({ ...range, ...page }), shapeOf);
  if (data.items.length === 0) await noteUncounted(session, resource);
  return { data, text: (style) => renderUsage(data, style) };
};

function shapeOf({ windowStart: start, windowEnd: end, ...usage }: Usage): UsageShape {
  return { ...usage, windowStart: start.toISOString(), windowEnd: end.toISOString() };
}

const summarizeUsage: StoreAction<RangeOptions> = async (session, [resource = ''], options) => {
  const { from, to, ...sums } = await session.limiter.usage.summary(rangeOf(resource, options, new Date()));
  if (sums.count === 0) await noteUncounted(session, resource);
  const data: UsageSummaryShape = {
    entityId: options.entity ?? null,
    resource,
    window: options.window,
    from: from?.toISOString() ?? null,
    to: to?.toISOString() ?? null,
    ...sums,
  };
  return { data, text: () => renderSummary(data) };
};

/** On DynamoDB, a reader of the table's stream counts usage. Adds a note if no reader has ever counted this resource. */
async function noteUncounted({ limiter, address, note }: Session, resource: string): Promise<void> {
  if (parseDynamoDBAddress(address) === null) return;
  const counted = await limiter.usage.query({ resource, window: 'monthly', limit: 1 });
  if (counted.items.length > 0) return;
  const used = await limiter.buckets.list({ resource, limit: BUCKETS_LOOKED_AT });
  if (!used.items.some(({ acquires }) => acquires > 0)) return;
  note(`${resource} is in use, but its usage was never counted: start \`headgate worker\`, or deploy a stack`);
}

const BUCKETS_LOOKED_AT = 20;

interface PlotOptions extends RangeOptions {
  readonly only?: string;
  readonly table?: boolean;
}

const plotUsage: StoreAction<PlotOptions> = async (session, [resource = ''], options) => {
  const now = new Date();
  const range = rangeOf(resource, options, now);
  const starts = windowStarts(range, now);
  const series = await readSeries(session, { ...range, from: new Date(starts[0] ?? 0) }, starts);
  const { only } = options;
  if (isEmpty(series)) await noteUncounted(session, resource);
  if (only !== undefined && !series.has(only)) {
    throw new ValidationError('--only', `one of ${[...series.keys()].join(', ')}`, only);
  }
  const data: UsagePlotShape = {
    entityId: options.entity ?? null,
    resource,
    window: options.window,
    series: [...series]
      .filter(([name]) => only === undefined || name === only)
      .map(([name, values]) => ({
        name,
        points: starts.map((start) => ({ windowStart: new Date(start).toISOString(), value: values.get(start) ?? 0 })),
      })),
  };
  return { data, text: (style) => renderPlot(data, options.table === true, style) };
};

function isEmpty(series: ReadonlyMap<string, ReadonlyMap<number, number>>): boolean {
  return [...series.values()].every((values) => [...values.values()].every((value) => value === 0));
}

const rebuildUsageOf: StoreAction = async ({ address, namespace }, [entityId = '', resource = '']) => {
  const { rebuildUsage } = await import('../../../backends/dynamodb/stream/rebuild/rebuild.js');
  const report = await rebuildUsage({ ...requireDynamoDB(address), namespace, entityId, resource });
  const { addedMilli, acquires, expired } = report;
  const added = Object.fromEntries([...addedMilli].map(([limit, milli]) => [limit, wholeTokens(milli)]));
  const data: UsageRebuildShape = { entityId, resource, added, acquires, expired };
  const rows = [...Object.entries(added), ['acquires', acquires], ['expired', expired]].map((row) => row.map(String));
  return {
    data,
    text: ({ width }) =>
      addedMilli.size === 0 && acquires === 0 && expired === 0
        ? `Nothing was missing of ${entityId} on ${resource}.`
        : drawTable(['LIMIT', 'ADDED'], rows, width),
  };
};

function renderUsage(list: ListShape<UsageShape>, style: Style): string {
  if (list.items.length === 0) return 'No usage.';
  const names = [...new Set(list.items.flatMap(({ tokens }) => Object.keys(tokens)))];
  const rows = list.items.map(({ entityId, window, windowStart, tokens, acquires, expired }) => [
    windowLabel(windowStart, window),
    entityId,
    ...names.map((name) => tokens[name] ?? 0),
    acquires,
    expired,
  ]);
  const table = drawTable(['WINDOW (UTC)', 'ENTITY', ...names, 'ACQUIRES', 'EXPIRED'], rows, style.width);
  return table + moreLine(list, style);
}

function renderSummary(summary: UsageSummaryShape): string {
  const { entityId, resource, window, from, to, count, total, average, acquires, expired } = summary;
  const who = entityId ?? 'all entities';
  if (count === 0) return `No usage of ${resource} by ${who}.`;
  const fields = drawFields([
    ['resource', resource],
    ['entity', who],
    ['from', from === null ? '-' : minutes(from)],
    ['to', to === null ? '-' : minutes(to)],
    ['windows', `${formatCount(count)} ${window} with usage`],
    ['acquires', formatCount(acquires)],
    ['expired', `${formatCount(expired)} leases`],
  ]);
  const rows = Object.entries(total).map(([name, tokens]) => [name, tokens, average[name] ?? 0]);
  if (rows.length === 0) return fields;
  return `${fields}\n\n${drawTable(['LIMIT', 'TOTAL', 'AVERAGE PER WINDOW'], rows)}`;
}

function minutes(instant: string): string {
  return `${instant.slice(0, 16).replace('T', ' ')}Z`;
}
