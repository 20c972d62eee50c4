import type { Awaitable, UsageRecord } from '../../backend.js';
import { wholeTokens } from '../../core/bucket/decide.js';
import { ValidationError } from '../../core/errors.js';
import { checkEntityId, checkResource } from '../../core/identifiers.js';
import { USAGE_WINDOWS, type UsageWindow, windowEnd } from '../../core/usage/usage.js';
import { callStore, type Context } from '../context.js';
import { type Listing, listing, type ListOptions } from './listing.js';
import { checkOneOf } from '../options.js';

/** Which usage to read. */
export interface UsageRange {
  /** Default: all entities. */
  readonly entityId?: string;
  readonly resource: string;
  readonly window: UsageWindow;
  /** Windows that begin at or after `from` and before `to`. Default: all windows. */
  readonly from?: Date;
  readonly to?: Date;
}

/** What one entity consumed on one resource in one window: net of refunds, rates only. */
export interface Usage {
  readonly entityId: string;
  readonly resource: string;
  readonly window: UsageWindow;
  readonly windowStart: Date;
  readonly windowEnd: Date;
  readonly tokens: Readonly<Record<string, number>>;
  readonly acquires: number;
  readonly expired: number;
}

/** Usage of several windows, added up. */
export interface UsageSummary {
  readonly total: Readonly<Record<string, number>>;
  /** The average over the windows that have a record. */
  readonly average: Readonly<Record<string, number>>;
  readonly acquires: number;
  readonly expired: number;
  /** The number of windows that have a record. */
  readonly count: number;
  readonly from: Date | null;
  readonly to: Date | null;
}

/** `limiter.usage`: what was consumed, by window. */
export class UsageApi {
  readonly #context: () => Awaitable<Context>;

  constructor(context: () => Awaitable<Context>) {
    this.#context = context;
  }

  /** One item per entity and window that has any usage, in the order of time. */
  query(query: UsageRange & ListOptions): Listing<Usage> {
    return listing(query, viewOf, async (page) => {
      checkRange(query);
      const { entityId = null, resource, window } = query;
      const range = {
        entityId,
        resource,
        window,
        fromMs: msOf(query.from, 0),
        toMs: msOf(query.to, Number.MAX_SAFE_INTEGER),
      };
      const context = await this.#context();
      return callStore(context, 'reading usage', (call) => context.backend.usage.query(call, range, page));
    });
  }

  /** The sum and the average over all windows of the range. */
  async summary(query: UsageRange): Promise<UsageSummary> {
    const total = new Map<string, number>();
    const starts = new Set<number>();
    const sums = { acquires: 0, expired: 0 };
    let last: Usage | undefined;
    for await (const usage of this.query({ ...query, limit: 1_000 })) {
      for (const [name, tokens] of Object.entries(usage.tokens)) total.set(name, (total.get(name) ?? 0) + tokens);
      sums.acquires += usage.acquires;
      sums.expired += usage.expired;
      starts.add(usage.windowStart.getTime());
      last = usage;
    }
    const [first] = starts;
    const count = starts.size;
    return {
      total: Object.fromEntries(total),
      average: Object.fromEntries([...total].map(([name, tokens]) => [name, tokens / count])),
      ...sums,
      count,
      from: query.from ?? (first === undefined ? null : new Date(first)),
      to: query.to ?? last?.windowEnd ?? null,
    };
  }
}

function checkRange(query: UsageRange): void {
  if (query.entityId !== undefined) checkEntityId(query.entityId);
  checkResource(query.resource);
  checkOneOf('window', query.window, USAGE_WINDOWS);
  for (const field of ['from', 'to'] as const) {
    const value: unknown = query[field];
    if (value === undefined || (value instanceof Date && !Number.isNaN(value.getTime()))) continue;
    throw new ValidationError(field, 'a Date', value);
  }
}

function msOf(date: Date | undefined, otherwise: number): number {
  return date === undefined ? otherwise : date.getTime();
}

function viewOf({ entityId, resource, window, startMs, consumedMilli, acquires, expired }: UsageRecord): Usage {
  return {
    entityId,
    resource,
    window,
    windowStart: new Date(startMs),
    windowEnd: new Date(windowEnd(window, startMs)),
    tokens: tokensOf(consumedMilli),
    acquires,
    expired,
  };
}

/** Leaves out a limit whose net consumption is 0, because not every store records that it was used. */
function tokensOf(consumedMilli: UsageRecord['consumedMilli']): Readonly<Record<string, number>> {
  const used = [...consumedMilli].filter(([, milli]) => milli !== 0);
  return Object.fromEntries(used.map(([name, milli]) => [name, wholeTokens(milli)]));
}
