interface Changeable {
  readonly bypass?: true;
  readonly version: number;
}

/** The record of an entity after a change, with the next version. A bypass that is switched off is left out. */
export function changedEntity<R extends Changeable>(
  before: R,
  { bypass = before.bypass, ...change }: Partial<Omit<R, 'bypass' | 'version'>> & { readonly bypass?: boolean },
): R {
  const { bypass: _, ...kept } = before;
  const after = { ...kept, ...change, version: before.version + 1 };
  return (bypass === true ? { ...after, bypass } : after) as unknown as R;
}
