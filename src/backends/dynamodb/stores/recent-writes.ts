import type { EpochMs } from '../../../core/units.js';

/** Longer than an eventually consistent read ever lags. */
const LAG_MS = 10_000;

/** More namespaces than one process administers at a time. */
const MAX_KNOWN = 1_000;

/**
 * The namespaces that this process has just changed. Reads for an acquire are eventually consistent, at half the price.
 * Only the process that made a change must see it at once, because it will cache what it reads.
 */
export class RecentWrites {
  readonly #atMs = new Map<string, EpochMs>();

  note(namespaceId: string, nowMs: EpochMs): void {
    if (this.#atMs.size >= MAX_KNOWN) this.#atMs.clear();
    this.#atMs.set(namespaceId, nowMs);
  }

  isRecent(namespaceId: string, nowMs: EpochMs): boolean {
    const atMs = this.#atMs.get(namespaceId);
    return atMs !== undefined && Math.abs(nowMs - atMs) < LAG_MS;
  }
}
