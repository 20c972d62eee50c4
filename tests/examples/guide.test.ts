import { afterAll, expect, test } from 'vitest';
import { configuration } from '../../examples/guide/configuration.js';
import * as acquiring from '../../examples/guide/acquiring.js';

afterAll(async () => {
  await acquiring.limiter.close();
});

test('run settles, rolls back what failed, and an error names the limit that refused', async () => {
  expect(await acquiring.withRun()).toBe('You asked: Why is the sky blue?');
  expect(await acquiring.withUsing()).toBeGreaterThan(0);
  await expect(acquiring.withThrow('fail')).rejects.toThrow('The vendor failed');
  const left = await acquiring.limiter.available({ entityId: 'user-1', resource: 'gpt-4' });
  expect(left.rpm).toBe(58);
  expect(await acquiring.withError()).toMatch(/^tpm of user-1: wait \d+ ms$/);
});

test('what is left is read without taking any of it', async () => {
  await acquiring.withRun();
  const first = await acquiring.withoutTaking();
  const { left, limits, statuses, waitMs } = await acquiring.withoutTaking();
  expect(left.rpm).toBeGreaterThanOrEqual(first.left.rpm ?? Infinity);
  expect(left.tpm).toBeGreaterThanOrEqual(first.left.tpm ?? Infinity);
  expect(limits.map(({ limit, entityId }) => `${limit.name} of ${entityId}`)).toEqual([
    'rpm of user-1',
    'tpm of user-1',
  ]);
  expect(statuses).toMatchObject([{ requested: 9_500, exceeded: true }]);
  expect(waitMs).toBeGreaterThan(0);
});

test('the first level that has limits applies', async () => {
  expect(await configuration()).toEqual([
    'rpm:50/min entity',
    'rpm:40/min entity_default',
    'rpm:30/min resource',
    'rpm:20/min system',
  ]);
});

test('a denial as a value: an answer costs its real tokens, a failure costs nothing, and a denial names the wait', async () => {
  const consumed = async () => {
    const bucket = await acquiring.limiter.buckets.get({ entityId: 'user-1', resource: 'gpt-4' });
    return bucket?.limits.map((limit) => limit.consumed) ?? [];
  };
  const [requests = 0, tokens = 0] = await consumed();
  expect(await acquiring.withValue('why?')).toBe('You asked: why?');
  await expect(acquiring.withValue('fail')).rejects.toThrow('The vendor failed');
  expect(await consumed()).toEqual([requests + 1, tokens + 700]);

  let answer = '';
  while (!answer.startsWith('Try')) answer = await acquiring.withValue('why?');
  expect(answer).toMatch(/^Try again in \d+ ms\.$/);
});
