import { expect, test } from 'vitest';
import { PendingCalls } from './pending-calls.js';

test('calls are idle when each that began has ended, however often they were idle before', async () => {
  const calls = new PendingCalls();
  await calls.idle();
  calls.begin();
  calls.end();
  calls.begin();
  calls.begin();
  let isIdle = false;
  const idle = calls.idle().then(() => (isIdle = true));
  calls.end();
  await Promise.resolve();
  expect(isIdle).toBe(false);
  calls.end();
  await idle;
  expect(isIdle).toBe(true);
});
