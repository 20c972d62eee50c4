import type { Backend } from '../backend.js';
import { BackendUnavailable, type UnavailableKind } from '../core/errors.js';

/** How a store fails: with an error at once, or without an answer. */
export type OutageMode = 'fail' | 'hang';

/** A store that can be made to fail. */
export interface Outage {
  readonly backend: Backend;
  /** Makes every later call fail, or only the named calls (`consume`, `config.readFor`, ...). */
  start(options?: {
    readonly mode?: OutageMode;
    readonly kind?: UnavailableKind;
    readonly only?: readonly string[];
    /** Ends the outage after this many failed calls. */
    readonly calls?: number;
    /** The call reaches the store, and its answer is lost. */
    readonly afterWrite?: boolean;
    /** Thrown instead of `BackendUnavailable`. */
    readonly error?: unknown;
  }): void;
  /** Ends the outage: the store answers again. */
  end(): void;
  /** The names of all calls so far, in order. */
  readonly calls: readonly string[];
}

/** Wraps a store so that a test can make it fail. */
export function outage(inner: Backend): Outage {
  const calls: string[] = [];
  let fault: Parameters<Outage['start']>[0] | null = null;
  let left = Number.POSITIVE_INFINITY;

  const guarded = (name: string, work: () => unknown): unknown => {
    calls.push(name);
    const current = fault;
    if (current === null || left <= 0 || (current?.only !== undefined && !current.only.includes(name))) return work();
    left -= 1;
    if (current?.afterWrite === true) void Promise.resolve(work()).catch(() => {});
    if (current?.mode === 'hang') return new Promise(() => {});
    return Promise.reject(
      (current?.error as Error | undefined) ??
        new BackendUnavailable(`${name}: the test made the store fail`, current?.kind ?? 'connection'),
    );
  };

  return {
    backend: wrap(inner, '', guarded),
    start: (options = {}) => {
      fault = options;
      left = options.calls ?? Number.POSITIVE_INFINITY;
    },
    end: () => {
      fault = null;
    },
    calls,
  };
}

/** Passes every method of the port and of its stores through `guarded` with its name, also the methods of a class. */
function wrap<T extends object>(target: T, prefix: string, guarded: (name: string, work: () => unknown) => unknown): T {
  const wrapped = namesOf(target).map((key) => {
    const value: unknown = target[key as keyof T];
    const name = prefix + key;
    if (typeof value === 'function') {
      return [key, (...args: unknown[]) => guarded(name, () => Reflect.apply(value, target, args) as unknown)];
    }
    return [key, typeof value === 'object' && value !== null ? wrap(value, `${name}.`, guarded) : value];
  });
  return Object.fromEntries(wrapped) as T;
}

function namesOf(target: object): readonly string[] {
  const names = new Set<string>();
  for (let layer: object | null = target; layer !== null && layer !== Object.prototype;) {
    for (const name of Object.getOwnPropertyNames(layer)) names.add(name);
    layer = Object.getPrototypeOf(layer) as object | null;
  }
  names.delete('constructor');
  return [...names];
}
