/** How much the heap grows per key passed to `use`. `keeper` must stay reachable during the collection. */
export async function bytesPerKey(
  keys: readonly string[],
  keeper: object,
  use: (key: string) => Promise<void>,
): Promise<number> {
  if (globalThis.gc === undefined) throw new Error('Needs node --expose-gc');
  // A first use compiles code and creates tables, which must not count as the size of a bucket.
  await use('warm-up');
  const before = await settledHeap();
  for (const key of keys) await use(key);
  const after = await settledHeap();
  kept.add(keeper);
  return (after - before) / keys.length;
}

const kept = new Set<object>();

/** Collects until the heap no longer shrinks: objects of pending event loop turns are still referenced. */
async function settledHeap(): Promise<number> {
  for (let turn = 0; turn < 5; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
}
