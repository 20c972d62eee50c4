import type { Backend } from '../backend.js';
import { parseDynamoDBAddress } from '../backends/dynamodb/address.js';
import { file, parseFileAddress } from '../backends/embedded/file/file.js';
import { memory } from '../backends/embedded/memory.js';
import { ValidationError } from '../core/errors.js';
import { lazyBackend } from './outage/lazy-backend.js';
import type { ResolvedOptions } from './options.js';

type Environment = Readonly<Record<string, string | undefined>>;

export function isBackend(value: unknown): value is Backend {
  return typeof value === 'object' && value !== null && 'consume' in value && typeof value.consume === 'function';
}

/** Refuses a value that is not a plain object. An incomplete backend must not be mistaken for options, which would use memory. */
export function checkOptionsObject(value: unknown): void {
  const prototype: unknown = typeof value === 'object' && value !== null ? Object.getPrototypeOf(value) : undefined;
  if (prototype === Object.prototype || prototype === null) return;
  throw new ValidationError('store', 'an address, a backend or an object of options', value);
}

/** The given backend or address. Default: `HEADGATE_URL`, else memory. */
export function storeOrAddress(store: string | Backend | undefined, env: Environment): string | Backend {
  // An empty variable counts as unset.
  return store ?? (env['HEADGATE_URL'] || 'memory:');
}

/** The namespace that an address names. */
export function namespaceIn(store: string | Backend): string | undefined {
  return typeof store === 'string' ? parseDynamoDBAddress(store)?.namespace : undefined;
}

/** The given backend, or the one that the address names. */
export function storeFrom(store: string | Backend, options: ResolvedOptions, env: Environment): Backend {
  if (typeof store === 'object') return store;
  if (store.startsWith('file:')) return file({ ...parseFileAddress(store), namespace: options.namespace });
  const address = parseDynamoDBAddress(store);
  if (address !== null) {
    return lazyBackend('dynamodb', async () => {
      const { createDynamoDBBackend } = await import('../backends/dynamodb/dynamodb.js');
      return createDynamoDBBackend(address);
    });
  }
  if (store !== 'memory:') {
    throw new ValidationError('store', `'memory:', 'file:./limits.db', 'dynamodb://my-table' or a backend`, store);
  }
  if (env['AWS_LAMBDA_FUNCTION_NAME'] !== undefined || env['NODE_ENV'] === 'production') warnOfMemoryOnce();
  return memory({ namespaces: [options.namespace] });
}

let warned = false;

function warnOfMemoryOnce(): void {
  if (warned) return;
  warned = true;
  process.emitWarning(
    'Headgate keeps its limits in the memory of this process: no other process shares them, and they are lost when it ends. Name a store with HEADGATE_URL.',
    'HeadgateWarning',
  );
}
