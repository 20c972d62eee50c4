import { ValidationError } from '../errors.js';

/** One thing that is wrong with a manifest, and where. */
export interface Problem {
  /** Such as `entities.user-1.default.limits[0]`. */
  readonly path: string;
  /** Whether it is the name of the field that is wrong, or what stands there. */
  readonly at: 'key' | 'value';
  readonly expected: string;
  readonly got: unknown;
}

/** The root of a manifest has no name: problems with the whole of it are problems of `manifest`. */
export const ROOT = '';

/** Names that are no plain words stand in brackets, so that no two places share a path. */
export function joinPath(parent: string, key: string | number): string {
  if (typeof key === 'number') return `${parent}[${key}]`;
  if (!/^[\w-]+$/.test(key)) return `${parent}[${JSON.stringify(key)}]`;
  return parent === ROOT ? key : `${parent}.${key}`;
}

/** What is wrong with one manifest, in the order in which it was found. */
export class Problems {
  readonly #found: Problem[] = [];

  get found(): readonly Problem[] {
    return this.#found;
  }

  add(path: string, expected: string, got: unknown, at: Problem['at'] = 'value'): void {
    this.#found.push({ path, at, expected, got });
  }

  /** Runs a check that throws, and keeps what it says under the path at hand. */
  try<T>(path: string, got: unknown, check: () => T, at: Problem['at'] = 'value'): T | undefined {
    try {
      return check();
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      this.add(path, error.expected, got, at);
      return undefined;
    }
  }

  /** The first problem, with the number of the others. */
  throwIfAny(): void {
    const [first, ...others] = this.#found;
    if (first !== undefined)
      throw new ValidationError(first.path || 'manifest', first.expected, first.got, others.length);
  }
}
