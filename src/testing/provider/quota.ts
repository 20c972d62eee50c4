/** A token bucket of the provider, for each key and model. */
export interface ProviderQuota {
  readonly tokensPerSecond: number;
  readonly burst: number;
}

interface Balance {
  tokens: number;
  atMs: number;
}

/** The quotas of a provider, separate from those of Headgate. */
export class Quotas {
  readonly #quota: ProviderQuota;
  readonly #balances = new Map<string, Balance>();

  constructor(quota: ProviderQuota) {
    this.#quota = quota;
  }

  /** Takes the tokens and returns 0, or takes nothing and returns the wait until they fit. */
  take(key: string, tokens: number, nowMs: number): number {
    const { tokensPerSecond, burst } = this.#quota;
    const balance = this.#balances.get(key) ?? { tokens: burst, atMs: nowMs };
    const passedMs = Math.max(0, nowMs - balance.atMs);
    balance.tokens = Math.min(burst, balance.tokens + (passedMs * tokensPerSecond) / 1000);
    balance.atMs = nowMs;
    this.#balances.set(key, balance);
    if (balance.tokens < tokens) return Math.ceil(((tokens - balance.tokens) * 1000) / tokensPerSecond);
    balance.tokens -= tokens;
    return 0;
  }
}
