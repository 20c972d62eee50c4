import { describe, test } from 'vitest';
import { memory } from '../../src/index.js';
import { describeBackend } from '../../src/testing/backend.js';
import { withoutResident } from '../support/without-resident.js';

/** As `memory.test.ts`, with every acquire through `consume`. The cases asked in groups go through it there already. */
describeBackend('memory without resident buckets', {
  describe,
  test,
  create: () => withoutResident(memory()),
  inGroups: false,
});
