import { readFileSync } from 'node:fs';
import { machineTime } from '../../../../machine-time.js';
import type { HostTime } from './file-clock.js';

/** The clocks of the machine that this process runs on. */
export function readHostTime(): HostTime {
  return {
    ...machineTime,
    hostMs: () => Number(process.hrtime.bigint() / 1_000_000n),
    bootId: readBootId(),
  };
}

/**
 * Linux has a boot id. On other systems, a host clock that restarts at 0 shows a restart, except in its first minutes.
 */
function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
