import { expect, test } from 'vitest';
import { WaveShare } from './wave-share.js';

/** 2,000 tokens a second: 50 in a period, 20 in the time of the reserve. */
const refilledIn = (ms: number): number => ms * 2;
const slow = (ms: number): number => Math.floor(ms / 10);

/** The largest wave that the share allows. */
function largest(share: WaveShare): number {
  let tokens = 1;
  while (tokens < 1_000 && share.allows(tokens + 1, refilledIn)) tokens += 1;
  return tokens;
}

test('shares that start unequal become equal, because all see the same balance', () => {
  const shares = [new WaveShare(() => 0.5), new WaveShare(() => 0.5)] as const;
  // The first process has met a short limit alone, so its share is small.
  for (let atMs = 1; atMs <= 10; atMs++) shares[0].learn(0, true, atMs, refilledIn);
  shares[1].learn(0, true, 1, refilledIn);
  expect(largest(shares[0]) * 5).toBeLessThan(largest(shares[1]));
  let balance = 0;
  for (let wave = 0; wave < 200; wave++) {
    balance = Math.max(0, balance + refilledIn(25) - largest(shares[0]) - largest(shares[1]));
    for (const share of shares) share.learn(balance, false, 100 + wave, refilledIn);
  }
  const [one, other] = shares.map(largest) as [number, number];
  expect(Math.abs(one - other)).toBeLessThanOrEqual(2);
  expect(one + other).toBeGreaterThan(refilledIn(25) * 0.7);
});

test('the answers of one wave lower the share once, also if a grant of the wave was counted first', () => {
  const share = new WaveShare(() => 0);
  share.learn(100, false, 1, refilledIn);
  const raised = largest(share);
  for (let answer = 0; answer < 10; answer++) share.learn(0, true, 1, refilledIn);
  expect(largest(share)).toBe(80);
  expect(raised).toBe(102);
});

test('a limit that refills few tokens in a period is not paced', () => {
  const share = new WaveShare(() => 1);
  share.startWave(1_000);
  for (let atMs = 1; atMs <= 50; atMs++) share.learn(0, true, atMs, slow);
  expect(share.allows(1_000, slow)).toBe(true);
  expect(share.waveMs(1_001, 2_000, slow)).toBe(1_001);
});

test('a wave is sent when all waiters fit, or after the period if the share is small, but never before its head fits', () => {
  const share = new WaveShare(() => 0.5);
  share.startWave(1_000);
  expect(share.waveMs(1_001, 1_010, refilledIn)).toBe(1_010);
  share.learn(0, true, 1_000, refilledIn);
  share.learn(0, true, 1_001, refilledIn);
  share.learn(0, true, 1_002, refilledIn);
  share.learn(0, true, 1_003, refilledIn);
  expect(share.waveMs(1_001, 1_010, refilledIn)).toBe(1_025);
  expect(share.waveMs(1_040, 1_060, refilledIn)).toBe(1_040);
});
