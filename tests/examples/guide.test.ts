import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configuration } from '../../examples/guide/configuration.js';
import * as acquiring from '../../examples/guide/acquiring.js';
import type * as gettingStarted from '../../examples/guide/getting-started.js';
import { hierarchy } from '../../examples/guide/hierarchy.js';
import { openWithPolicy } from '../../examples/guide/outages.js';
import { slots } from '../../examples/guide/slots.js';
import * as waiting from '../../examples/guide/waiting.js';
import { memory } from 'headgate';
import { outage } from 'headgate/testing';

afterAll(async () => {
  await acquiring.limiter.close();
  await waiting.limiter.close();
});

describe('the example of the first page', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-example-'));
  const before = process.cwd();
  let example: typeof gettingStarted;

  beforeAll(async () => {
    process.chdir(folder);
    example = await import('../../examples/guide/getting-started.js');
  });
  afterAll(async () => {
    await example.limiter.close();
    process.chdir(before);
    rmSync(folder, { recursive: true });
  });

  test('an answer costs its real tokens, a failure costs nothing, and a user who spends all is told to wait', async () => {
    expect(await example.answer('ada', 'why?')).toBe('You asked: why?');
    await expect(example.answer('ada', 'fail')).rejects.toThrow('The vendor failed');
    const left = await example.limiter.available({ entityId: 'ada', resource: 'gpt-4' });
    expect(left.tpm).toBeGreaterThanOrEqual(9_300);
    expect(left.rpm).toBe(59);
    for (let at = 0; at < 20; at++) await example.answer('bob', 'why?');
    expect(await example.answer('bob', 'why?')).toMatch(/^Please try again in \d+ ms\.$/);
  });
});

test('run settles, rolls back what failed, and an error names the limit that refused', async () => {
  expect(await acquiring.withRun()).toBe('You asked: Why is the sky blue?');
  expect(await acquiring.withUsing()).toBeGreaterThan(0);
  await expect(acquiring.withThrow()).rejects.toThrow('The vendor failed');
  const left = await acquiring.limiter.available({ entityId: 'user-1', resource: 'gpt-4' });
  expect(left.rpm).toBe(58);
  expect(await acquiring.withError()).toMatch(/^tpm of user-1: wait \d+ ms$/);
});

test('a call waits for its tokens', async () => {
  expect([await waiting.withTimeout(), await waiting.withTimeout()]).toEqual(['granted', 'granted']);
});

test('a slot is given back when the work ends', async () => {
  expect(await slots('memory:')).toBe(1);
});

test('a child is refused by its parent', async () => {
  expect(await hierarchy()).toEqual(['true', 'false', 'tpm of acme']);
});

test('the first level that has limits applies', async () => {
  expect(await configuration()).toEqual([
    'rpm:50/min entity',
    'rpm:40/min entity_default',
    'rpm:30/min resource',
    'rpm:20/min system',
  ]);
});

test('while the store is out, the local policy admits no more than the limit in this process', async () => {
  const store = outage(memory());
  const { limiter, told } = openWithPolicy(store.backend);
  const ask = async () => limiter.tryAcquire({ entityId: 'user-1', resource: 'gpt-4', consume: { rpm: 60 } });
  expect(await ask()).toMatchObject({ granted: true, decidedBy: 'store' });
  store.start();
  expect(await ask()).toMatchObject({ granted: true, decidedBy: 'fallback' });
  expect(await ask()).toMatchObject({ granted: false, decidedBy: 'fallback' });
  for (let at = 0; at < 10; at++) await ask();
  expect(told).toEqual(['outage-begin']);
  store.end();
  await limiter.close();
});
