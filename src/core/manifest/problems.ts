import { ValidationError } from '../errors.js';

/** One mistake in a manifest, with its path. */
export interface ManifestProblem {
  /** Such as `entities.user-1.default.limits[0]`. */
  readonly path: string;
  /** Whether the name of the field is wrong or its value. */
  readonly at: 'key' | 'value';
  readonly expected: string;
  readonly got: unknown;
}

/** The path of the whole manifest. Messages call it `manifest`. */
export const ROOT = '';

/** Puts names that are not plain words into brackets, so that every path is unique. */
export function joinPath(parent: string, key: string | number): string {
  if (typeof key === 'number') return `${parent}[${key}]`;
  if (!/^[\w-]+$/.test(key)) return `${parent}[${JSON.stringify(key)}]`;
  return parent === ROOT ? key : `${parent}.${key}`;
}

/** The problems of one manifest, in the order in which they were found. */
export class Problems {
  readonly #found: ManifestProblem[] = [];

  get found(): readonly ManifestProblem[] {
    return this.#found;
  }

  add(path: string, expected: string, got: unknown, at: ManifestProblem['at'] = 'value'): void {
    this.#found.push({ path, at, expected, got });
  }

  /** Runs a check that may throw a `ValidationError`, and records the error under `path`. */
  try<T>(path: string, got: unknown, check: () => T, at: ManifestProblem['at'] = 'value'): T | undefined {
    try {
      return check();
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      this.add(path, error.expected, got, at);
      return undefined;
    }
  }

  /** Throws the first problem, with the number of the others. */
  throwIfAny(): void {
    const [first, ...others] = this.#found;
    if (first !== undefined)
      throw new ValidationError(first.path || 'manifest', first.expected, first.got, others.length);
  }
}
