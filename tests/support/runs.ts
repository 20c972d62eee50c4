/** An eighth in `npm test`, all in `npm run test:chaos`. Files that use this are named in `vitest.config.ts`. */
const PART = Number(process.env['HEADGATE_RUNS'] ?? 0.125);

/** The number of cases of a property: all, or a part of them in `npm test`. */
export function runs(all: number): number {
  return Math.ceil(all * PART);
}

/** Whether all cases run. Only then a test may demand that rare cases were among them. */
export const runsAll = PART >= 1;
