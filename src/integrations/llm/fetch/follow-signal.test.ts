import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { followSignal } from './follow-signal.js';

describe('a signal that follows that of a caller', () => {
  test('the follower aborts with the reason of the caller, before and after it began to follow', () => {
    const reason = new Error('gone');
    const controller = new AbortController();
    const early = followSignal(controller.signal);
    expect(early.signal.aborted).toBe(false);
    controller.abort(reason);
    const late = followSignal(controller.signal);
    expect([early.signal.reason, late.signal.reason]).toEqual([reason, reason]);
  });

  test('a follower that no longer follows leaves no listener, and does not abort', () => {
    const controller = new AbortController();
    const { signal, unfollow } = followSignal(controller.signal);
    unfollow();
    unfollow();
    expect(getEventListeners(controller.signal, 'abort')).toEqual([]);
    controller.abort();
    expect(signal.aborted).toBe(false);
    expect(followSignal(null).signal.aborted).toBe(false);
  });

  test('a signal that a hundred calls share causes no warning of a leak', async () => {
    const warnings: string[] = [];
    const onWarning = ({ name }: Error): void => void warnings.push(name);
    process.on('warning', onWarning);
    const { signal } = new AbortController();
    const followers = Array.from({ length: 100 }, () => followSignal(signal));
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', onWarning);
    expect([followers.length, warnings]).toEqual([100, []]);
  });
});
