import { buildBucketKey, parseBucketKey } from '../../core/identifiers.js';
import { TwoKeyMap } from '../../core/two-key-map.js';
import type { EpochMs } from '../../core/units.js';
import type { AcquireRequest } from '../acquire/request.js';
import type { WaitingStatus } from './waiting-status.js';

/** A call that waits although no limit refused it. */
interface CallWithoutLimit {
  /** Since when. */
  readonly sinceMs: EpochMs;
}

type Asked = Pick<AcquireRequest, 'entityId' | 'resource' | 'priority'>;

/**
 * The calls that wait for the end of a pause, or ask again after other writers have won, by entity, resource and class. They
 * are in no line of a limit, because no limit refused them, and each asks by itself. Still they count for `maxWaiting`.
 */
export class CallsWithoutLimit {
  /** By the class, `''` for none, and by the key of the bucket. */
  readonly #calls = new TwoKeyMap<Set<CallWithoutLimit>>();

  /** Whether `maxWaiting` calls wait like this request, and the call itself is none of them. */
  isFullFor(request: Asked & Pick<AcquireRequest, 'wait'>, call: CallWithoutLimit): boolean {
    const depth = this.#calls.get(...keysOf(request))?.size ?? 0;
    return depth >= (request.wait?.maxWaiting ?? Number.POSITIVE_INFINITY) && !this.has(request, call);
  }

  has(request: Asked, call: CallWithoutLimit): boolean {
    return this.#calls.get(...keysOf(request))?.has(call) === true;
  }

  join(request: Asked, call: CallWithoutLimit): void {
    const keys = keysOf(request);
    const calls = this.#calls.get(...keys);
    if (calls === undefined) this.#calls.set(...keys, new Set([call]));
    else calls.add(call);
  }

  leave(request: Asked, call: CallWithoutLimit): void {
    const keys = keysOf(request);
    const calls = this.#calls.get(...keys);
    calls?.delete(call);
    if (calls?.size === 0) this.#calls.delete(...keys);
  }

  list(nowMs: EpochMs): readonly WaitingStatus[] {
    const found: WaitingStatus[] = [];
    for (const [priority, key, calls] of this.#calls.entries()) {
      const oldestWaitMs = nowMs - Math.min(...[...calls].map(({ sinceMs }) => sinceMs));
      const common = { ...parseBucketKey(key), limit: null, depth: calls.size, oldestWaitMs };
      found.push({ ...common, priority: priority === '' ? null : priority });
    }
    return found;
  }
}

function keysOf({ entityId, resource, priority }: Asked): [priority: string, bucket: string] {
  return [priority ?? '', buildBucketKey(entityId, resource)];
}
