import { Session } from 'node:inspector/promises';

export interface Heavy {
  /** The part of the CPU time that the function itself uses, without what it calls. */
  readonly share: number;
  readonly at: string;
}

const SHOWN = 40;
const ROUNDS = 6;
/** Not the measured work: the process waits, or the profiler collects. */
const IDLE: ReadonlySet<string> = new Set(['(idle)', '(program)', '(root)', 'dispatch']);

/** Samples the process while it works, and returns the functions that use most CPU. */
export async function heaviestFunctions(work: () => Promise<unknown>): Promise<readonly Heavy[]> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: 200 });
  await session.post('Profiler.start');
  for (let round = 0; round < ROUNDS; round++) await work();
  const { profile } = await session.post('Profiler.stop');
  session.disconnect();
  const byId = new Map(profile.nodes.map((node) => [node.id, node.callFrame]));
  const tookUs = new Map<string, number>();
  let totalUs = 0;
  for (const [at, id] of (profile.samples ?? []).entries()) {
    const { functionName = '', lineNumber = 0 } = byId.get(id) ?? {};
    if (IDLE.has(functionName)) continue;
    const us = profile.timeDeltas?.[at] ?? 0;
    const name = `${functionName === '' ? '(anonymous)' : functionName}:${lineNumber + 1}`;
    totalUs += us;
    tookUs.set(name, (tookUs.get(name) ?? 0) + us);
  }
  const heaviest = [...tookUs].toSorted((a, b) => b[1] - a[1]).slice(0, SHOWN);
  return heaviest.map(([name, us]) => ({ share: us / totalUs, at: name }));
}
