import { InfrastructureError } from '../../../../core/errors.js';
import type { EpochMs } from '../../../../core/units.js';
import { FileClock, type HostTime } from './file-clock.js';
import type { Statements } from '../database/statements.js';
import { selectTimeMark, writeTimeMark } from './time-row.js';

/** How often the time in use and the file's time are compared, by the time of the calls. */
const FOLLOW_EVERY_MS = 1_000;

/** Synchronizes the time of a file and of this process. Each method returns an error to report, or null. */
export class TimeKeeper {
  readonly #clock: FileClock;
  readonly #path: string;
  /** NaN: not yet. */
  #followedAtMs = Number.NaN;
  #markedAtMs = Number.NaN;

  constructor(host: HostTime, path: string) {
    this.#clock = new FileClock(host);
    this.#path = path;
  }

  now(): EpochMs {
    return this.#clock.now();
  }

  /** For a file that was just opened. */
  follow(sql: Statements): InfrastructureError | null {
    const leadMs = this.#clock.follow(selectTimeMark(sql));
    return leadMs === null ? null : this.#describe(leadMs);
  }

  /** Called in every transaction. A write stores the time after reading the largest one. */
  keep(sql: Statements, writes: boolean, nowMs: EpochMs): InfrastructureError | null {
    const lastAtMs = writes ? this.#markedAtMs : this.#followedAtMs;
    if (Math.abs(nowMs - lastAtMs) < FOLLOW_EVERY_MS) return null;
    const error = this.follow(sql);
    this.#followedAtMs = nowMs;
    if (writes) {
      writeTimeMark(sql, this.#clock.mark());
      this.#markedAtMs = nowMs;
    }
    return error;
  }

  #describe(leadMs: number): InfrastructureError {
    const what = `The wall clock of this machine is ${Math.abs(leadMs)} ms ${leadMs > 0 ? 'ahead of' : 'behind'} the time`;
    const then = leadMs > 0 ? 'That time gains on it by 2 ms a second' : 'That time never goes back';
    return new InfrastructureError('infrastructure.clock', `${what} that ${this.#path} uses. ${then}`);
  }
}
