import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';
import type { HostTime } from './file-clock.js';

/** The clocks of the machine that this process runs on. */
export function readHostTime(): HostTime {
  return {
    wallMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    uptimeMs: () => uptime() * 1_000,
    hostMs: () => Number(process.hrtime.bigint() / 1_000_000n),
    bootId: readBootId(),
  };
}

/** Linux has one. Elsewhere a host's clock that starts again from 0 tells a restart, except in its first minutes. */
function readBootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
