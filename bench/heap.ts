/** How much the heap grows for each key that `use` sees. `keeper` is what must survive the collection. */
export async function bytesPerKey(
  keys: readonly string[],
  keeper: object,
  use: (key: string) => Promise<void>,
): Promise<number> {
  if (globalThis.gc === undefined) throw new Error('Needs node --expose-gc');
  // Code is compiled and tables are made on first use: that is not the price of a bucket.
  await use('warm-up');
  const before = await settledHeap();
  for (const key of keys) await use(key);
  const after = await settledHeap();
  kept.add(keeper);
  return (after - before) / keys.length;
}

const kept = new Set<object>();

/** Collects until nothing more goes: what waits for a turn of the event loop is still referenced. */
async function settledHeap(): Promise<number> {
  for (let turn = 0; turn < 5; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
}
