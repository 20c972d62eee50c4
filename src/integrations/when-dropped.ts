/** Some edge runtimes have no such registry: what is dropped there ends by other means. */
const registry =
  typeof FinalizationRegistry === 'undefined'
    ? null
    : new FinalizationRegistry<() => void>((onDrop: () => void) => onDrop());

/** Calls `onDrop` after `target` was collected as garbage. `onDrop` must not refer to it, or it would not be collected. */
export function whenDropped(target: object, onDrop: () => void): void {
  registry?.register(target, onDrop);
}
