/** As many entities as the flood names. */
const ENTITIES = 10_000;

/**
 * Who is refused at each place of the flood: a third of the denials concern 7 entities, as in practice; the rest
 * concern all of them alike.
 */
export function tenantOf(at: number): string {
  return `tenant-${at % 3 === 0 ? at % 7 : (at * 7_919) % ENTITIES}`;
}
