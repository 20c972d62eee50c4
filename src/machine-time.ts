import type { TimeSources } from './core/steady-time.js';

/** The clocks of the machine that this process runs on. */
export const machineTime: TimeSources = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  // Not imported: a module without imports of Node is in the file that `headgate` shares with entry points for other
  // runtimes.
  uptimeMs: () => process.getBuiltinModule('node:os').uptime() * 1_000,
};

/**
 * An instant of the process's monotonic clock. Deadlines bound how long a request may take in real time. They never
 * decide anything about tokens: that time is a parameter of the call.
 */
export type Deadline = number;

export function deadlineIn(timeoutMs: number): Deadline {
  return performance.now() + timeoutMs;
}

export function timeLeftMs(deadline: Deadline): number {
  return deadline - performance.now();
}

export async function sleep(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
}

const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 200;

/** Full jitter: a random time up to a bound that doubles, so that writers that collided do not collide again. */
export function backOffMs(attempt: number, random: () => number): number {
  return random() * Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt);
}
