import { uptime } from 'node:os';
import type { TimeSources } from './core/steady-time.js';

/** The clocks of the machine that this process runs on. */
export const machineTime: TimeSources = {
  wallMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  uptimeMs: () => uptime() * 1_000,
};
