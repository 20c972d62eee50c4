/** Returns how many bytes the heap grows by the work, with what it returns still reachable. */
export async function heapGrowth<Kept>(work: () => Promise<Kept>): Promise<{ bytes: number; kept: Kept }> {
  if (globalThis.gc === undefined) throw new Error('Needs node --expose-gc');
  const before = await settledHeap();
  const kept = await work();
  const after = await settledHeap();
  return { bytes: after - before, kept };
}

/** Collects until the heap no longer shrinks: objects of pending event loop turns are still referenced. */
async function settledHeap(): Promise<number> {
  for (let turn = 0; turn < 5; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
  }
  return process.memoryUsage().heapUsed;
}
