/** The two ends of a promise. */
export interface Delivery<T> {
  readonly promise: Promise<T>;
  readonly to: Recipient<T>;
}

/**
 * Settles a promise once, and then forgets it. The functions of a promise keep its value alive: an answer that its caller
 * has dropped could not be collected while its call runs.
 */
export class Recipient<T> {
  #functions: { readonly resolve: (value: T) => void; readonly reject: (error: unknown) => void } | null;

  constructor(resolve: (value: T) => void, reject: (error: unknown) => void) {
    this.#functions = { resolve, reject };
  }

  resolve(value: T): void {
    this.#functions?.resolve(value);
    this.#functions = null;
  }

  reject(error: unknown): void {
    this.#functions?.reject(error);
    this.#functions = null;
  }
}

export function beginDelivery<T>(): Delivery<T> {
  let to: Recipient<T> | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    to = new Recipient(resolve, reject);
  });
  return { promise, to: to as Recipient<T> };
}
