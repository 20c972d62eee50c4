import { expect, test } from 'vitest';
import { hasBalance, holdsSlots, isConsumed, type LimitKind, refills, sharesAccount } from './limit-kind.js';

const ANSWERS: Readonly<Record<LimitKind, object>> = {
  rate: { isConsumed: true, refills: true, holdsSlots: false, hasBalance: true },
  concurrent: { isConsumed: false, refills: false, holdsSlots: true, hasBalance: true },
  unlimited: { isConsumed: true, refills: false, holdsSlots: false, hasBalance: false },
};
const KINDS = Object.keys(ANSWERS) as LimitKind[];

test.each(KINDS)('a limit of the kind %s answers each question as the table says', (kind) => {
  expect({
    isConsumed: isConsumed(kind),
    refills: refills(kind),
    holdsSlots: holdsSlots(kind),
    hasBalance: hasBalance(kind),
  }).toEqual(ANSWERS[kind]);
});

test('only slots never share an account with another kind', () => {
  const sharing = KINDS.flatMap((before) =>
    KINDS.filter((after) => sharesAccount(before, after)).map((after) => `${before} ${after}`),
  );
  expect(sharing).toEqual([
    'rate rate',
    'rate unlimited',
    'concurrent concurrent',
    'unlimited rate',
    'unlimited unlimited',
  ]);
});
