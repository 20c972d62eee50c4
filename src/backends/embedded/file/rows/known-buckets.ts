import { TwoKeyMap } from '../../../../core/two-key-map.js';
import type { Bucket } from '../../bucket.js';

/** Beyond this number all are dropped, because a bucket that is not known costs one read. */
const MAX_KNOWN = 4_000;

/** A bucket as this connection last wrote it. */
export interface KnownBucket {
  readonly bucket: Bucket;
  /** The row's text. It contains the whole state, so two rows with the same text are the same bucket. */
  readonly text: string;
  /** False while a transaction uses the object, and for ever if that transaction did not write it and commit. */
  isUnchanged: boolean;
}

export interface WrittenBucket {
  readonly entityId: string;
  readonly resource: string;
  readonly bucket: Bucket;
  readonly text: string;
}

/**
 * The buckets that a connection has written, by namespace. Other connections may have changed them since, so they are
 * only guesses: see `BucketRows`.
 */
export class KnownBuckets {
  readonly #namespaces = new Map<string, TwoKeyMap<KnownBucket>>();
  #count = 0;

  /** undefined: it is not known whether the namespace is active. */
  of(namespaceId: string): TwoKeyMap<KnownBucket> | undefined {
    return this.#namespaces.get(namespaceId);
  }

  /** Called after a commit, for a namespace that was active in that transaction. */
  keep(namespaceId: string, written: readonly WrittenBucket[]): void {
    if (this.#count + written.length > MAX_KNOWN) this.#clear();
    let known = this.#namespaces.get(namespaceId);
    if (known === undefined) {
      known = new TwoKeyMap();
      this.#namespaces.set(namespaceId, known);
      this.#count += 1;
    }
    const before = known.size;
    for (const { entityId, resource, bucket, text } of written) {
      known.set(entityId, resource, { bucket, text, isUnchanged: true });
    }
    this.#count += known.size - before;
  }

  #clear(): void {
    this.#namespaces.clear();
    this.#count = 0;
  }
}
