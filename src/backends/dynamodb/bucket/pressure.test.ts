import { describe, expect, test } from 'vitest';
import { NOW_MS } from '../../../../tests/support/dynamodb/shard/shard-images.js';
import { Pressure, PRESSURE } from './pressure.js';

const HALF = (): number => 0.5;

const units = (writeUnits: number, shardCount = 1) => ({ writeUnits, shardCount });

/** Shows a key that is written at this rate every `everyMs`, and returns the time of the last image. */
function busy(pressure: Pressure, unitsPerSec: number, forMs: number, fromMs = NOW_MS, everyMs = 20): number {
  for (let atMs = 0; atMs <= forMs; atMs += everyMs) {
    pressure.observe(units(Math.round((fromMs - NOW_MS + atMs) * (unitsPerSec / 1_000))), fromMs + atMs);
  }
  return fromMs + forMs;
}

describe('the pressure on a key', () => {
  test('the pressure is the difference of two images that are at least a second apart', () => {
    const pressure = new Pressure(PRESSURE);
    pressure.observe(units(100), NOW_MS);
    pressure.observe(units(900), NOW_MS + 999);
    expect(pressure.unitsPerSec).toBe(0);
    pressure.observe(units(900), NOW_MS + 1_000);
    expect(pressure.unitsPerSec).toBe(800);
    pressure.observe(units(1_000), NOW_MS + 3_000);
    expect(pressure.unitsPerSec).toBe(50);
  });

  test('40 writes a second never cause pacing or a split, however long they last', () => {
    const pressure = new Pressure(PRESSURE);
    for (let second = 0; second < 600; second++) {
      const nowMs = busy(pressure, 40, 1_000, NOW_MS + second * 1_000, 25);
      expect(pressure.pauseMs(HALF)).toBe(0);
      expect(pressure.wantsSplit(nowMs)).toBe(false);
    }
  });

  test('writes are paced above 500 units a second, in proportion, up to 25 ms, with jitter', () => {
    const pauseAt = (unitsPerSec: number, random: number): number => {
      const pressure = new Pressure(PRESSURE);
      pressure.observe(units(0), NOW_MS);
      pressure.observe(units(unitsPerSec), NOW_MS + 1_000);
      return pressure.pauseMs(() => random);
    };
    expect(pauseAt(500, 0.5)).toBe(0);
    expect([0, 1].map((random) => pauseAt(600, random))).toEqual([2.5, 5].map((ms) => expect.closeTo(ms, 9)));
    expect([0, 1].map((random) => pauseAt(750, random))).toEqual([6.25, 12.5]);
    expect([0, 1].map((random) => pauseAt(5_000, random))).toEqual([12.5, 25]);
  });

  test('a split needs more than 1,000 units a second for two seconds', () => {
    const pressure = new Pressure(PRESSURE);
    busy(pressure, 1_200, 1_980);
    expect(pressure.wantsSplit(NOW_MS + 1_999)).toBe(false);
    busy(pressure, 1_200, 1_000, NOW_MS + 2_000);
    expect(pressure.wantsSplit(NOW_MS + 2_000)).toBe(true);
  });

  test('a key that pacing holds below 1,000 units a second is not split', () => {
    const pressure = new Pressure(PRESSURE);
    expect(pressure.wantsSplit(busy(pressure, 999, 60_000))).toBe(false);
  });

  test('a burst of less than two seconds causes no split', () => {
    const pressure = new Pressure(PRESSURE);
    pressure.observe(units(0), NOW_MS);
    pressure.observe(units(5_000), NOW_MS + 1_000);
    pressure.observe(units(5_100), NOW_MS + 2_000);
    expect(pressure.wantsSplit(NOW_MS + 10_000)).toBe(false);
    // The next burst is measured from its own start.
    pressure.observe(units(9_000), NOW_MS + 3_000);
    expect(pressure.wantsSplit(NOW_MS + 3_999)).toBe(false);
  });

  test('a key is split at once if DynamoDB names its range as throttled', () => {
    const pressure = new Pressure(PRESSURE);
    pressure.markHot();
    expect(pressure.wantsSplit(NOW_MS)).toBe(true);
    pressure.reset();
    expect(pressure.wantsSplit(NOW_MS)).toBe(false);
  });

  test('the pressure is unknown after a split', () => {
    const pressure = new Pressure(PRESSURE);
    const endMs = busy(pressure, 3_000, 4_000);
    expect(pressure.wantsSplit(endMs)).toBe(true);
    pressure.reset();
    expect([pressure.unitsPerSec, pressure.pauseMs(HALF), pressure.wantsSplit(endMs)]).toEqual([0, 0, false]);
  });

  test('the pressure is measured again after another process has split the key', () => {
    const pressure = new Pressure(PRESSURE);
    const endMs = busy(pressure, 3_000, 4_000);
    pressure.observe(units(12_001, 2), endMs + 1);
    expect([pressure.unitsPerSec, pressure.wantsSplit(endMs + 1)]).toEqual([0, false]);
  });

  test('a counter that decreases is taken as the counter of another item', () => {
    const pressure = new Pressure(PRESSURE);
    pressure.observe(units(1_000_000), NOW_MS);
    pressure.observe(units(1), NOW_MS + 500);
    expect(pressure.unitsPerSec).toBe(0);
    pressure.observe(units(101), NOW_MS + 1_500);
    expect(pressure.unitsPerSec).toBe(100);
  });

  test('no rate is measured over a clock that went back', () => {
    const pressure = new Pressure(PRESSURE);
    pressure.observe(units(0), NOW_MS);
    pressure.observe(units(10), NOW_MS - 5_000);
    pressure.observe(units(20), NOW_MS - 4_000);
    expect(pressure.unitsPerSec).toBe(10);
  });

  test('high pressure ends after a pause: the next write measures the low rate', () => {
    const pressure = new Pressure(PRESSURE);
    busy(pressure, 3_000, 2_000);
    expect(pressure.pauseMs(HALF)).toBeGreaterThan(0);
    pressure.observe(units(6_001), NOW_MS + 60_000);
    expect(pressure.pauseMs(HALF)).toBe(0);
    expect(pressure.wantsSplit(NOW_MS + 60_000)).toBe(false);
  });
});
