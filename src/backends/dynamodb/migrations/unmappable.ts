/** An old record without a counterpart. It stays, and the report names it. */
export class Unmappable extends Error {
  override readonly name = 'Unmappable';
}
