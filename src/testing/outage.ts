import type { Backend } from '../backend.js';
import { BackendUnavailable, type UnavailableKind } from '../core/errors.js';

/** How a store fails: at once with an error, or by not answering. */
export type OutageMode = 'fail' | 'hang';

/** A store that can be made to fail. */
export interface Outage {
  readonly backend: Backend;
  /** Fails every call from now on, or those whose name is given (`consume`, `config.readFor`, ...). */
  start(options?: {
    readonly mode?: OutageMode;
    readonly kind?: UnavailableKind;
    readonly only?: readonly string[];
    /** Fails this many calls, then the outage is over. */
    readonly calls?: number;
    /** Lets the call reach the store, and loses the answer. */
    readonly afterWrite?: boolean;
    /** Thrown instead of `BackendUnavailable`. */
    readonly error?: unknown;
  }): void;
  end(): void;
  /** The names of all calls that were made since the start of time, in their order. */
  readonly calls: readonly string[];
}

/** Puts a switch in front of a store, for tests of what happens while it is out. */
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

/** Every method of the port, and of its small stores, goes through `guarded` under its name; also those of a class. */
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
