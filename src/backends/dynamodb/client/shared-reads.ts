import { isHeadgateError } from '../../../core/errors.js';
import type { Deadline } from '../../../machine-time.js';
import type { RecordKey } from '../table/keys.js';
import { MAX_KEYS, printKey, readBatch, readItems } from './batches.js';
import { isOver, refusalOf, type Table, type Turn, turnUntil } from './requests.js';
import type { Item } from './transport.js';

/** The number of concurrent requests. Reads that arrive meanwhile wait and share the next requests. */
const MAX_UNDER_WAY = 8;

interface QueuedRead {
  readonly keys: readonly RecordKey[];
  readonly printed: readonly string[];
  readonly deadline: Deadline;
  readonly turn: Turn;
  readonly consistent: boolean;
  readonly resolve: (items: readonly (Item | undefined)[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Batches reads of a few keys each: reads that arrive in one turn of the event loop share a BatchGetItem. A single read
 * is sent at once, without a timer. Each read is answered as soon as its own keys are read, whatever happens to the
 * others.
 */
export class SharedReads {
  readonly #table: Table;
  #queue: QueuedRead[] = [];
  #underWay = 0;
  #isScheduled = false;
  #answeredMs = Number.NEGATIVE_INFINITY;

  constructor(table: Table) {
    this.#table = table;
  }

  /** Items in the order of the keys, at most `MAX_KEYS`; undefined where there is none. */
  read(keys: readonly RecordKey[], deadline: Deadline, consistent: boolean): Promise<readonly (Item | undefined)[]> {
    const printed = keys.map(({ PK, SK }) => `${PK}\n${SK}`);
    const answer = new Promise<readonly (Item | undefined)[]>((resolve, reject) => {
      this.#queue.push({ keys, printed, deadline, turn: turnUntil(deadline), consistent, resolve, reject });
    });
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      // After all calls that are ready in this turn.
      queueMicrotask(() => this.#sendQueued());
    }
    return answer;
  }

  #sendQueued(): void {
    this.#isScheduled = false;
    while (this.#underWay < MAX_UNDER_WAY && this.#queue.length > 0) {
      const group = this.#nextGroup();
      if (group.length > 0) void this.#send(group);
    }
  }

  /** In the order of arrival. All reads of a batch have the consistency of the first. */
  #nextGroup(): readonly QueuedRead[] {
    const group: QueuedRead[] = [];
    const keys = new Set<string>();
    const rest: QueuedRead[] = [];
    for (const asked of this.#queue) {
      if (isOver(asked.turn)) {
        asked.reject(refusalOf(asked.turn, this.#answeredMs));
        continue;
      }
      const isAlike = group[0] === undefined || group[0].consistent === asked.consistent;
      const more = asked.printed.filter((key) => !keys.has(key));
      if (isAlike && rest.length === 0 && keys.size + more.length <= MAX_KEYS) {
        group.push(asked);
        for (const key of more) keys.add(key);
      } else {
        rest.push(asked);
      }
    }
    this.#queue = rest;
    return group;
  }

  async #send(group: readonly QueuedRead[]): Promise<void> {
    this.#underWay += 1;
    const deadline = group.reduce((latest, asked) => Math.max(latest, asked.deadline), 0);
    const found = new Map<string, Item>();
    let open = group;
    try {
      const keys = group.flatMap((asked) => asked.keys);
      await readBatch(this.#table, keys, deadline, group[0]?.consistent ?? true, (items, left) => {
        this.#answeredMs = performance.now();
        for (const item of items) found.set(printKey(item), item);
        const isRead = ({ printed }: QueuedRead): boolean => !printed.some((key) => left.has(key));
        for (const { printed, resolve } of open.filter(isRead)) resolve(printed.map((key) => found.get(key)));
        open = open.filter((asked) => !isRead(asked));
      });
    } catch (error) {
      this.#fail(open, error);
    }
    this.#underWay -= 1;
    this.#sendQueued();
  }

  /** One read can cause the refusal of a batch, for example by a namespace that it may not read: each is sent alone. */
  #fail(open: readonly QueuedRead[], error: unknown): void {
    const isOutage = isHeadgateError(error, 'backend.unavailable');
    for (const asked of open) {
      if (isOutage || open.length === 1) asked.reject(error);
      else readItems(this.#table, asked.keys, asked.deadline, asked.consistent).then(asked.resolve, asked.reject);
    }
  }
}
