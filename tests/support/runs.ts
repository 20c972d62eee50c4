/** A quarter in `npm test`, all in `npm run test:chaos`. Files that use this are named in `vitest.config.ts`. */
const PART = Number(process.env['HEADGATE_RUNS'] ?? 0.25);

/** How many cases a property is tried with, of so many. */
export function runs(all: number): number {
  return Math.ceil(all * PART);
}
