/** The repairs of the reconciler, as counts. */
export interface RepairCounts {
  /** Expired holders. */
  readonly reclaimed: number;
  /** Limits whose free slots were wrong. */
  readonly healed: number;
  /** Pairs of shards that became one. */
  readonly merged: number;
  /** Buckets removed from the sweep list until they have holders again. */
  readonly unmarked: number;
}

export const NO_REPAIRS: RepairCounts = { reclaimed: 0, healed: 0, merged: 0, unmarked: 0 };

export function addRepairs(a: RepairCounts, b: RepairCounts): RepairCounts {
  return {
    reclaimed: a.reclaimed + b.reclaimed,
    healed: a.healed + b.healed,
    merged: a.merged + b.merged,
    unmarked: a.unmarked + b.unmarked,
  };
}

/** A bucket that could not be repaired. The next sweep visits it again. */
export interface ReconcilerFailure {
  readonly namespace: string;
  /** The bucket as `{entity}#{resource}`. */
  readonly bucket: string;
  readonly reason: string;
}

/** What one sweep over all active namespaces did. */
export interface ReconcilerReport extends RepairCounts {
  readonly namespaces: number;
  /** Buckets that were visited. */
  readonly visited: number;
  /** Buckets with so many concurrent writes that a step was left for the next sweep. */
  readonly busy: number;
  /** Buckets that could not be repaired; `failures` names the first of them. */
  readonly failed: number;
  readonly failures: readonly ReconcilerFailure[];
  /** false: the sweep was aborted before its end. */
  readonly complete: boolean;
  readonly durationMs: number;
}

/** A table may have any number of damaged items; the report is logged every five minutes and must stay small. */
const MAX_FAILURES = 20;

/** Sums up the results of visits. */
export class ReportSum {
  #repairs = NO_REPAIRS;
  #namespaces = 0;
  #visited = 0;
  #busy = 0;
  #failed = 0;
  readonly #failures: ReconcilerFailure[] = [];

  noteNamespace(): void {
    this.#namespaces += 1;
  }

  noteVisit(repairs: RepairCounts, busy: boolean): void {
    this.#visited += 1;
    if (busy) this.#busy += 1;
    this.#repairs = addRepairs(this.#repairs, repairs);
  }

  noteFailure(failure: ReconcilerFailure): void {
    this.#failed += 1;
    if (this.#failures.length < MAX_FAILURES) this.#failures.push(failure);
  }

  finish(complete: boolean, durationMs: number): ReconcilerReport {
    return {
      namespaces: this.#namespaces,
      visited: this.#visited,
      ...this.#repairs,
      busy: this.#busy,
      failed: this.#failed,
      failures: this.#failures,
      complete,
      durationMs,
    };
  }
}
