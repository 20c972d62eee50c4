/** The version of this code: the layout that it writes to new tables. */
export const SCHEMA_VERSION = 2;

/** The oldest version whose code may use a table of `SCHEMA_VERSION`: older code would misread records of version 2. */
export const MIN_CLIENT_VERSION = 2;

/** The oldest layout that this code can use. What needs a newer layout is refused there: see `gates.ts`. */
export const OLDEST_VERSION = 1;
