import { parsePlainResource } from '../../../../core/identifiers.js';
import type { TwoKeyMap } from '../../../../core/two-key-map.js';
import type { Bucket } from '../../bucket.js';
import { decodeBucket, encodeBucket } from './codec.js';
import type { KnownBucket, WrittenBucket } from './known-buckets.js';
import type { Statements } from '../database/statements.js';

interface Guess {
  readonly entityId: string;
  readonly resource: string;
  readonly text: string;
}

/** A guess was wrong: the transaction must be rolled back, and done again from the rows of the file. */
class WrongGuess extends Error {}

/**
 * The rows of the buckets of one namespace in one transaction. With `known`, a bucket that this connection has written
 * before is not read again: the transaction guesses that its row has not changed, and that the namespace is still active.
 * The write of the bucket proves both, because its condition names the guessed text. So an acquire is one statement
 * between BEGIN and COMMIT, and exact whatever other processes do.
 */
export class BucketRows {
  readonly #sql: Statements;
  readonly #ns: string;
  readonly #known: TwoKeyMap<KnownBucket> | null;
  /** Buckets that were read from memory, and whose rows were not compared yet. */
  readonly #guesses: Guess[] = [];
  #isNamespaceProven: boolean;
  /** What the transaction wrote: known to the next one if this one commits. */
  readonly written: WrittenBucket[] = [];

  /** `known` of null: the caller has checked that the namespace is active, and every bucket is read from its row. */
  constructor(sql: Statements, namespaceId: string, known: TwoKeyMap<KnownBucket> | null) {
    this.#sql = sql;
    this.#ns = namespaceId;
    this.#known = known;
    this.#isNamespaceProven = known === null;
  }

  /** False: a result or an error may come from a wrong guess. */
  get isProven(): boolean {
    return this.#isNamespaceProven && this.#guesses.length === 0;
  }

  read(entityId: string, resource: string): Bucket | undefined {
    const known = this.#known?.get(entityId, resource);
    if (known === undefined || !known.isUnchanged) {
      const text = this.#selectText(entityId, resource);
      return text === undefined ? undefined : decodeBucket(text);
    }
    // The caller may change the object and then fail or not write it, so no later read gets it.
    known.isUnchanged = false;
    this.#guesses.push({ entityId, resource, text: known.text });
    return known.bucket;
  }

  write(entityId: string, resource: string, bucket: Bucket): void {
    const text = encodeBucket(bucket);
    const at = this.#guesses.findIndex((guess) => guess.entityId === entityId && guess.resource === resource);
    const [guess] = at === -1 ? [] : this.#guesses.splice(at, 1);
    if (guess === undefined) this.#upsert(entityId, resource, text);
    else this.#replace(guess, text);
    this.written.push({ entityId, resource, bucket, text });
  }

  /** Compares what no write has compared. Throws if a guess was wrong. */
  prove(): void {
    for (const { entityId, resource, text } of this.#guesses.splice(0)) {
      if (this.#selectText(entityId, resource) !== text) this.#giveUp();
    }
    if (!this.#isNamespaceProven && !this.#isNamespaceActive()) this.#giveUp();
    this.#isNamespaceProven = true;
  }

  #replace({ entityId, resource, text }: Guess, next: string): void {
    const changed = this.#sql(
      `UPDATE buckets SET state = ?1 WHERE ns = ?2 AND entity = ?3 AND resource = ?4 AND state = ?5
       AND EXISTS (SELECT 1 FROM namespaces WHERE id = ?2 AND status = 'active')`,
    ).run(next, this.#ns, entityId, resource, text);
    if (changed !== 1) this.#giveUp();
    this.#isNamespaceProven = true;
  }

  #upsert(entityId: string, resource: string, text: string): void {
    this.#sql(
      `INSERT INTO buckets (ns, entity, resource, plain, state) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET state = excluded.state`,
    ).run(this.#ns, entityId, resource, parsePlainResource(resource), text);
  }

  #selectText(entityId: string, resource: string): string | undefined {
    const row = this.#sql('SELECT state FROM buckets WHERE ns = ? AND entity = ? AND resource = ?').get(
      this.#ns,
      entityId,
      resource,
    );
    return row === undefined ? undefined : String(row[0]);
  }

  #isNamespaceActive(): boolean {
    return this.#sql(`SELECT 1 FROM namespaces WHERE id = ? AND status = 'active'`).get(this.#ns) !== undefined;
  }

  #giveUp(): never {
    this.#isNamespaceProven = false;
    throw new WrongGuess(`a bucket of namespace ${this.#ns} was changed by another connection`);
  }
}
