import { expect, test } from 'vitest';
import { InFlight } from './in-flight.js';

test('requests are idle when each that began has ended, however often they were idle before', async () => {
  const requests = new InFlight();
  await requests.idle();
  requests.begin();
  requests.end();
  requests.begin();
  requests.begin();
  let isIdle = false;
  const idle = requests.idle().then(() => (isIdle = true));
  requests.end();
  await Promise.resolve();
  expect(isIdle).toBe(false);
  requests.end();
  await idle;
  expect(isIdle).toBe(true);
});
