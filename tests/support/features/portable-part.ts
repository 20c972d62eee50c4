import fc from 'fast-check';
import type { Amount, PortablePart } from '../../../src/core/bucket/decide.js';
import { sub } from '../../../src/core/int.js';

/** The part of the holder of a portable lease, as a store keeps it. */
export function portableParts(
  amounts: fc.Arbitrary<readonly Amount[]>,
  id: fc.Arbitrary<string>,
): fc.Arbitrary<PortablePart> {
  const others = fc
    .tuple(amounts, fc.boolean())
    .map(([listed, isTotal]) =>
      listed.map(({ name, milli }) => ({ name, milli: isTotal ? milli : sub(0, milli), isTotal })),
    );
  return fc
    .record(
      {
        state: fc.constantFrom('open' as const, 'committed' as const, 'rolled-back' as const),
        taken: amounts,
        adjusts: fc.array(id, { maxLength: 4 }),
        step: fc.integer({ min: 1, max: 1e6 }),
        released: fc.constant(true as const),
        forParents: others,
      },
      { noNullPrototype: true, requiredKeys: ['state', 'taken', 'adjusts'] },
    )
    .map((part): PortablePart => {
      const { released: _released, ...ended } = part;
      return part.state === 'open' ? part : ended;
    });
}
