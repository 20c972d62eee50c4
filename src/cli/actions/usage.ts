import { parseDynamoDBAddress } from '../../backends/dynamodb/address.js';
import { ValidationError } from '../../core/errors.js';
import { type UsageWindow, windowEnd, windowStart } from '../../core/usage/usage.js';
import type { Usage, UsageRange } from '../../limiter/api/usage-api.js';
import type { StoreAction } from '../define-command.js';
import { type PagingOptions, readList } from '../paging.js';
import { parseInstant } from '../parse.js';
import { renderPlot, renderSummary, renderUsage } from '../render/usage.js';
import type { Session } from '../session.js';
import type { UsagePlotShape, UsageShape, UsageSummaryShape } from '../shapes.js';

interface RangeOptions {
  readonly entity?: string;
  readonly window: UsageWindow;
  readonly from?: string;
  readonly to?: string;
}

function rangeOf(resource: string, { entity, window, from, to }: RangeOptions, now: Date): UsageRange {
  return {
    resource,
    window,
    ...(entity === undefined ? {} : { entityId: entity }),
    ...(from === undefined ? {} : { from: parseInstant('--from', from, now) }),
    ...(to === undefined ? {} : { to: parseInstant('--to', to, now) }),
  };
}

export const listUsage: StoreAction<RangeOptions & PagingOptions> = async (session, [resource = ''], options) => {
  const range = rangeOf(resource, options, new Date());
  const data = await readList(session, options, (page) => session.limiter.usage.query({ ...range, ...page }), shapeOf);
  if (data.items.length === 0) await noteUncounted(session, resource);
  return { data, text: (style) => renderUsage(data, style) };
};

function shapeOf({ windowStart: start, windowEnd: end, ...usage }: Usage): UsageShape {
  return { ...usage, windowStart: start.toISOString(), windowEnd: end.toISOString() };
}

export const summarizeUsage: StoreAction<RangeOptions> = async (session, [resource = ''], options) => {
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

interface PlotOptions extends RangeOptions {
  readonly only?: string;
  readonly table?: boolean;
}

/** What is drawn unless `--from` says otherwise: a day of hours, a month of days, a year of months. */
const WINDOWS_SHOWN = { hourly: 24, daily: 30, monthly: 12 } as const satisfies Record<UsageWindow, number>;
const MAX_WINDOWS = 1_000;

export const plotUsage: StoreAction<PlotOptions> = async (session, [resource = ''], options) => {
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

/** On DynamoDB, usage is counted by what reads the stream of the table: says so where nothing ever has. */
async function noteUncounted({ limiter, address, note }: Session, resource: string): Promise<void> {
  if (parseDynamoDBAddress(address) === null) return;
  const counted = await limiter.usage.query({ resource, window: 'monthly', limit: 1 });
  if (counted.items.length > 0) return;
  const used = await limiter.buckets.list({ resource, limit: BUCKETS_LOOKED_AT });
  if (!used.items.some(({ acquires }) => acquires > 0)) return;
  note(`${resource} is in use, but nothing has ever counted it: start headgate worker, or deploy a stack`);
}

const BUCKETS_LOOKED_AT = 20;

/** Every window of the range, in the order of time. */
function windowStarts({ window, from, to }: UsageRange, now: Date): readonly number[] {
  const endMs = to?.getTime() ?? now.getTime() + 1;
  const firstMs = from === undefined ? startBefore(window, endMs) : startAfter(window, from.getTime());
  const starts: number[] = [];
  for (let startMs = firstMs; startMs < endMs; startMs = windowEnd(window, startMs)) {
    if (starts.length === MAX_WINDOWS) {
      throw new ValidationError('--from', `at most ${MAX_WINDOWS} ${window} windows before the end`, from);
    }
    starts.push(startMs);
  }
  if (starts.length === 0) throw new ValidationError('--to', 'later than --from by a window or more', to);
  return starts;
}

function startAfter(window: UsageWindow, fromMs: number): number {
  const startMs = windowStart(window, fromMs);
  return startMs < fromMs ? windowEnd(window, startMs) : startMs;
}

function startBefore(window: UsageWindow, endMs: number): number {
  let startMs = windowStart(window, endMs - 1);
  for (let shown = 1; shown < WINDOWS_SHOWN[window]; shown++) startMs = windowStart(window, startMs - 1);
  return startMs;
}

/** Per limit, and for `acquires`: what all entities of the range have in each window. */
async function readSeries(
  { limiter, progress }: Session,
  range: UsageRange,
  starts: readonly number[],
): Promise<ReadonlyMap<string, ReadonlyMap<number, number>>> {
  const series = new Map<string, Map<number, number>>();
  const add = (name: string, startMs: number, value: number): void => {
    const values = series.get(name) ?? new Map<number, number>();
    values.set(startMs, (values.get(startMs) ?? 0) + value);
    series.set(name, values);
  };
  const acquires = new Map<number, number>(starts.map((start) => [start, 0]));
  let read = 0;
  for await (const usage of limiter.usage.query({ ...range, limit: 1_000 })) {
    const startMs = usage.windowStart.getTime();
    for (const [name, tokens] of Object.entries(usage.tokens)) add(name, startMs, tokens);
    acquires.set(startMs, (acquires.get(startMs) ?? 0) + usage.acquires);
    read += 1;
    progress(`read ${read} records so far`);
  }
  return series.set('acquires', acquires);
}
