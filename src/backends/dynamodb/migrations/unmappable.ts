/** An old record that has no counterpart here. It stays where it is, and the report names it. */
export class Unmappable extends Error {
  override readonly name = 'Unmappable';
}
