import { expect, test } from 'vitest';
import { deadlineIn } from '../../../machine-time.js';
import { InFlight } from './requests.js';

test('requests beyond the bound start in the order of their arrival, one for each that ends', async () => {
  const inFlight = new InFlight(2);
  const started: number[] = [];
  const enter = (id: number): void => {
    const turn = inFlight.enter(deadlineIn(60_000));
    if (turn === undefined) started.push(id);
    else void turn.then(() => started.push(id));
  };
  for (const id of [1, 2, 3, 4, 5]) enter(id);
  expect(started).toEqual([1, 2]);
  for (const expected of [
    [1, 2, 3],
    [1, 2, 3, 4],
    [1, 2, 3, 4, 5],
  ]) {
    inFlight.leave(true);
    await Promise.resolve();
    expect(started).toEqual(expected);
  }
});

test.each([
  ['contended', 'the store answered meanwhile', true],
  ['timeout', 'the store answered nothing meanwhile', false],
])('a request that can only start too late is refused as %s if %s', async (kind, _, answered) => {
  const inFlight = new InFlight(1);
  expect(inFlight.enter(deadlineIn(60_000))).toBeUndefined();
  const late = inFlight.enter(deadlineIn(-1));
  const next = inFlight.enter(deadlineIn(60_000));
  inFlight.leave(answered);
  await expect(late).rejects.toMatchObject({ code: 'backend.unavailable', kind });
  // The free place is given to the next request.
  await next;
});

test('a place without a waiting request is free for the next one', () => {
  const inFlight = new InFlight(1);
  expect(inFlight.enter(deadlineIn(60_000))).toBeUndefined();
  inFlight.leave(true);
  expect(inFlight.enter(deadlineIn(60_000))).toBeUndefined();
});
