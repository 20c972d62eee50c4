/** An item of a queue: lower numbers come first. */
export interface Ordered {
  readonly order: number;
}

interface Node<T> {
  readonly item: T;
  before: Node<T> | null;
  after: Node<T> | null;
}

/** A queue sorted by `order`, not by time of insertion. Deletion takes constant time; insertion is cheap near both ends. */
export class OrderedQueue<T extends Ordered> {
  readonly #nodes = new Map<T, Node<T>>();
  #first: Node<T> | null = null;
  #last: Node<T> | null = null;

  get size(): number {
    return this.#nodes.size;
  }

  get first(): T | null {
    return this.#first?.item ?? null;
  }

  after(item: T): T | null {
    return this.#nodes.get(item)?.after?.item ?? null;
  }

  add(item: T): void {
    if (this.#nodes.has(item)) return;
    const before = this.#placeBefore(item.order);
    const after = before === null ? this.#first : before.after;
    const node: Node<T> = { item, before, after };
    if (before === null) this.#first = node;
    else before.after = node;
    if (after === null) this.#last = node;
    else after.before = node;
    this.#nodes.set(item, node);
  }

  /** False: the item was not in the queue. */
  delete(item: T): boolean {
    const node = this.#nodes.get(item);
    if (node === undefined) return false;
    if (node.before === null) this.#first = node.after;
    else node.before.after = node.after;
    if (node.after === null) this.#last = node.before;
    else node.after.before = node.before;
    return this.#nodes.delete(item);
  }

  /** Searches from both ends, because new waiters belong near the end and refused waiters near the front. */
  #placeBefore(order: number): Node<T> | null {
    let back = this.#last;
    let front = this.#first;
    while (front !== null && back !== null) {
      if (back.item.order < order) return back;
      if (front.item.order > order) return front.before;
      back = back.before;
      front = front.after;
    }
    return back;
  }
}
