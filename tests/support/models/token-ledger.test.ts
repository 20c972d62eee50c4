import { describe, expect, test } from 'vitest';
import { Limit } from '../../../src/core/limit.js';
import { TokenLedger } from './token-ledger.js';

/** A capacity of 10, and 2 tokens a second. */
const ledgerOf = () => new TokenLedger(Limit.perSecond('tokens', 2, { burst: 10 }));

describe('the ledger of tokens', () => {
  test('the ledger allows the capacity and the refill of each window, and not a millitoken more', () => {
    const ledger = ledgerOf();
    ledger.take(0, 10_000);
    ledger.take(500, 1_000);
    expect([ledger.overdrawn(), ledger.mostTokens(500), ledger.mostTokens(1_000)]).toEqual([null, 0, 1_000]);
    ledger.take(1_000, 1_001);
    expect(ledger.overdrawn()).toBe('1 millitokens too much from 0 to 1000');
    expect(ledger.overdrawn(1)).toBeNull();
  });

  test('the ledger checks every window, also where the whole is within its bounds', () => {
    const ledger = ledgerOf();
    ledger.take(0, 1_000);
    ledger.take(60_000, 10_000);
    expect(ledger.overdrawn()).toBeNull();
    ledger.take(60_001, 5_000);
    expect(ledger.overdrawn()).toBe('4998 millitokens too much from 60000 to 60001');
  });

  test('the ledger allows a debit to cause debt, and no take after it', () => {
    const ledger = ledgerOf();
    ledger.take(0, 10_000);
    ledger.debit(0, 5_000);
    ledger.debit(1_000, 1_000);
    expect([ledger.overdrawn(), ledger.mostTokens(1_000), ledger.leastNet]).toEqual([null, -4_000, 16_000]);
    ledger.take(2_000, 0);
    expect(ledger.overdrawn()).toBeNull();
    ledger.take(2_000, 1);
    expect(ledger.overdrawn()).not.toBeNull();
  });

  test('the ledger allows a refund to be taken again once, from the time at which it may have counted', () => {
    const ledger = ledgerOf();
    ledger.take(0, 10_000);
    ledger.refund(100, 300, 4_000, false);
    ledger.take(100, 4_000);
    expect(ledger.overdrawn()).toBeNull();
    expect([ledger.leastNet, ledger.mostNet]).toEqual([10_000, 14_000]);
    ledger.take(300, 4_000);
    expect(ledger.overdrawn()).not.toBeNull();
  });

  test('the ledger allows no take of a refund before it was made', () => {
    const ledger = ledgerOf();
    ledger.take(0, 10_000);
    ledger.take(100, 4_000);
    ledger.refund(101, 101, 4_000);
    expect(ledger.overdrawn()).not.toBeNull();
  });

  test('the ledger drops the refill of a full bucket', () => {
    const ledger = ledgerOf();
    ledger.take(0, 2_000);
    ledger.refund(60_000, 60_000, 2_000);
    expect(ledger.mostTokens(60_000)).toBe(10_000);
  });
});
