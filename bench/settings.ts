import { parseArgs } from 'node:util';
import { LEAST_PAIRS } from './spread.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    all: { type: 'boolean', default: false },
    tiny: { type: 'boolean', default: false },
    processes: { type: 'string', default: '1,2,4,8,16' },
    runs: { type: 'string', default: '1' },
    skip: { type: 'string', default: '' },
  },
});

/** The part to run, and the arguments of a child process; none: all parts. */
export const ARGUMENTS: readonly string[] = positionals;
/** Also what takes long or needs programs that are not installed by npm. */
export const ALL: boolean = values.all;
/** Only shows that the bench works: two short rounds, so that no goal is decided. */
const TINY: boolean = values.tiny;
/** How many processes share a bucket, in the part `processes`. */
export const PROCESS_COUNTS: readonly number[] = values.processes.split(',').map(Number);
for (const count of PROCESS_COUNTS) {
  if (!(Number.isInteger(count) && count > 0)) {
    throw new RangeError(`Expected --processes to be counts like 1,2,4, got ${values.processes}`);
  }
}

/** How often the process of a part is started anew. The runs share the pairs, so that all together take hardly longer. */
export const RUNS: number = Number(values.runs);
if (!(Number.isInteger(RUNS) && RUNS > 0))
  throw new RangeError(`Expected --runs to be from 1 and up, got ${values.runs}`);
/** Parts that are not run. */
export const SKIPPED: readonly string[] = values.skip.split(',');

/** What the process of a part needs to have the same settings. */
export const FLAGS: readonly string[] = [
  ...(ALL ? ['--all'] : []),
  ...(TINY ? ['--tiny'] : []),
  `--processes=${values.processes}`,
  `--runs=${RUNS}`,
];

/** In how many pairs two contenders are measured. */
export const PAIRS: number = TINY ? 2 : Math.ceil(LEAST_PAIRS / RUNS);

/** A duration, or a number of operations. */
export function sized(full: number): number {
  return TINY ? Math.max(1, Math.ceil(full / 50)) : full;
}
