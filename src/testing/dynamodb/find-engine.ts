import { ValidationError } from '../../core/errors.js';
import {
  ENGINE_NAMES,
  type EngineName,
  type EngineProgram,
  type EngineSearch,
  findProgram,
} from '../../local/engine/engine-programs.js';

/** The endpoint of an engine that was started outside of the tests. */
const ENDPOINT_VARIABLE = 'HEADGATE_TEST_ENDPOINT';

/** Without ExtendDB, which verifies signatures and creates tables slowly: it is used only by name. */
const DEFAULT_ORDER: readonly EngineName[] = ['dynoxide', 'dynamodb-local'];

/** Options of `findEngine` and `startEngine`. */
export interface EngineOptions {
  /** The folder whose packages are searched for engines. Default: the working directory and Headgate's own folder. */
  readonly folder?: string;
}

/** An engine that can be used now, or the reason why there is none. */
export type FoundEngine = EngineSearch<{ readonly name: EngineName | 'endpoint' }>;

/** A found engine with the program or endpoint to use. */
export type UsableEngine = EngineSearch<
  | { readonly name: EngineName; readonly program: EngineProgram }
  | { readonly name: 'endpoint'; readonly endpoint: string }
>;

/**
 * The engine that `startEngine` would use with the same arguments. Does not start it.
 * Without a name: the engine at HEADGATE_TEST_ENDPOINT (`endpoint`), else dynoxide, else DynamoDB Local.
 */
export function findEngine(name?: EngineName, options: EngineOptions = {}): FoundEngine {
  const usable = findUsableEngine(name, options);
  return usable.status === 'available' ? { status: 'available', name: usable.name } : usable;
}

export function findUsableEngine(name: EngineName | undefined, options: EngineOptions): UsableEngine {
  const folders = options.folder === undefined ? [process.cwd(), import.meta.dirname] : [options.folder];
  if (name !== undefined) {
    if (!ENGINE_NAMES.includes(name)) throw new ValidationError('name', `one of ${ENGINE_NAMES.join(', ')}`, name);
    return named(name, folders);
  }
  const endpoint = process.env[ENDPOINT_VARIABLE];
  if (endpoint !== undefined && endpoint !== '') {
    return { status: 'available', name: 'endpoint', endpoint: checked(endpoint) };
  }
  const reasons: string[] = [];
  for (const candidate of DEFAULT_ORDER) {
    const usable = named(candidate, folders);
    if (usable.status === 'available') return usable;
    reasons.push(usable.reason);
  }
  return { status: 'unavailable', reason: `${ENDPOINT_VARIABLE} is not set; ${reasons.join('; ')}` };
}

function named(name: EngineName, folders: readonly string[]): UsableEngine {
  const program = findProgram(name, folders);
  return program.status === 'available' ? { status: 'available', name, program } : program;
}

function checked(endpoint: string): string {
  if (!/^https?:/.test(endpoint) || !URL.canParse(endpoint)) {
    throw new ValidationError(ENDPOINT_VARIABLE, 'a URL like http://127.0.0.1:8000', endpoint);
  }
  return endpoint.replace(/\/$/, '');
}
