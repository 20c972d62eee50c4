/** Deeper data could overflow the stack of a recursive function, such as one that copies or prints it. */
export const MAX_LEVELS = 500;

/** How many levels of objects and lists the data has: 0 for a text or a number. Without recursion. */
export function levelsOf(data: unknown): number {
  let levels = 0;
  for (let level = [data].filter(isNested); level.length > 0; levels++) {
    level = level.flatMap((value) => Object.values(value)).filter(isNested);
  }
  return levels;
}

function isNested(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
