import type { Backend } from '../../src/backend.js';

/** The same store, without the shorter way to its buckets: every acquire goes through `consume`. */
export function withoutResident(backend: Backend): Backend {
  const { resident: _, ...rest } = backend;
  return rest;
}
