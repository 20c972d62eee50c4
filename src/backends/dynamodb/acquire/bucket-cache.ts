import { BucketShards } from './bucket-shards.js';
import type { PressureOptions } from '../bucket/pressure.js';
import type { Table } from '../client/requests.js';
import { Revocations } from './revocations.js';

/** Buckets that one process remembers; beyond, those that were used longest ago go first. */
const MAX_BUCKETS = 20_000;

/** What this process knows of buckets: bounded, because there may be one for every user. */
export class BucketCache {
  readonly #table: Table;
  readonly #pressure: PressureOptions;
  readonly #revocations: Revocations;
  /** In the order of their last use. */
  readonly #known = new Map<string, BucketShards>();

  constructor(table: Table, pressure: PressureOptions) {
    this.#table = table;
    this.#pressure = pressure;
    this.#revocations = new Revocations(table.random);
  }

  /** Ends what goes on in the background. */
  async finish(): Promise<void> {
    await this.#revocations.finish();
  }

  of(ns: string, entityId: string, resource: string): BucketShards {
    const key = `${ns}/${entityId}#${resource}`;
    const known = this.#known.get(key);
    if (known !== undefined) {
      // Moving to the end costs as much as looking up: only where forgetting is near.
      if (this.#known.size * 2 > MAX_BUCKETS) {
        this.#known.delete(key);
        this.#known.set(key, known);
      }
      return known;
    }
    const bucket = new BucketShards(this.#table, ns, entityId, resource, this.#pressure, this.#revocations);
    this.#known.set(key, bucket);
    if (this.#known.size > MAX_BUCKETS) this.#forgetOldest();
    return bucket;
  }

  /** Whoever is being written for stays: two lines of one shard would not know of each other's groups. */
  #forgetOldest(): void {
    for (const [key, bucket] of this.#known) {
      if (bucket.busy) continue;
      this.#known.delete(key);
      return;
    }
  }
}
