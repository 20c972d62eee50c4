import type { Amount } from '../../core/bucket/decide.js';
import type { EpochMs } from '../../core/units.js';
import { levelOf } from '../acquire/levels.js';
import type { CachedConfig } from '../config/config-cache.js';
import type { Context } from '../context.js';
import { type LeaseAccount, StoredLeaseAccount } from './lease-account.js';

/**
 * What a lease without a holder took from rates of one level. Most such leases are committed as they are, so the account
 * that can show and correct the amounts is made at the first look.
 */
export class PlainGrant {
  readonly #config: CachedConfig;
  readonly #taken: readonly Amount[];
  readonly #grantedAtMs: EpochMs;

  constructor(config: CachedConfig, taken: readonly Amount[], nowMs: EpochMs) {
    this.#config = config;
    this.#taken = taken;
    this.#grantedAtMs = nowMs;
  }

  /** As in `LeaseAccount`. */
  get holds(): false {
    return false;
  }

  openAccount(context: Context): LeaseAccount {
    const level = levelOf(this.#config, this.#config.resolved.limits, this.#taken);
    return new StoredLeaseAccount(context, this.#grantedAtMs, null, [level]);
  }
}
