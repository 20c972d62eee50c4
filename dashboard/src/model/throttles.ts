import type { LiveEvent } from '../api/events.js';
import { setNewest } from './bounded.js';
import { formatDuration } from './format.js';

const MOST_RESOURCES = 20;

/** How often a provider has refused calls of a resource, and what it said last. */
export interface Throttled {
  readonly resource: string;
  readonly count: number;
  readonly atMs: number;
  readonly text: string;
}

type ThrottleData = Extract<LiveEvent, { readonly type: 'provider-throttle' }>['data'];

/** The refusals of providers by resource, in memory of a fixed size. */
export class Throttles {
  readonly #found = new Map<string, Throttled>();

  add({ entityId, resource, dimension, retryAfterMs }: ThrottleData, atMs: number): void {
    const count = (this.#found.get(resource)?.count ?? 0) + 1;
    const wait = retryAfterMs === null ? 'no wait stated' : `for ${formatDuration(retryAfterMs)}`;
    const text = `${entityId}, ${dimension === null ? wait : `${dimension} ${wait}`}`;
    setNewest(this.#found, resource, { resource, count, atMs, text }, MOST_RESOURCES);
  }

  /** The resource of the newest refusal first. */
  rows(): readonly Throttled[] {
    return [...this.#found.values()].toReversed();
  }
}
