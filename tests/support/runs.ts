/** An eighth in `npm test`, all in `npm run test:chaos`. Files that use this are named in `vitest.config.ts`. */
const PART = Number(process.env['HEADGATE_RUNS'] ?? 0.125);

/** The number of cases of a property: all, or a part of them in `npm test`. */
export function runs(all: number): number {
  return Math.ceil(all * PART);
}
