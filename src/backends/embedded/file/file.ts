import { resolve } from 'node:path';
import type { Backend } from '../../../backend.js';
import { ValidationError } from '../../../core/errors.js';
import { buildFirstNamespaceId, checkNamespace } from '../../../core/identifiers.js';
import { createEmbeddedBackend } from '../embedded-backend.js';
import { LazyFileStorage } from './lazy-file-storage.js';

/** Options of `file`. */
export interface FileOptions {
  /** Relative to the working directory. The first write creates a missing file. */
  readonly path: string;
  /**
   * `normal`: a grant survives a crash of the process. `full`: also a power failure, at the cost of a sync per write.
   * Default: `normal`.
   */
  readonly synchronous?: 'normal' | 'full';
  /** The first namespace of a new file. Default: `default`. */
  readonly namespace?: string;
}

/** A store in one file that the processes of one host share. */
export function file(options: FileOptions): Backend {
  const { path, synchronous = 'normal', namespace = 'default' } = options;
  if (typeof path !== 'string' || path === '') throw new ValidationError('path', 'the path of a file', path);
  if (synchronous !== 'normal' && synchronous !== 'full') {
    throw new ValidationError('synchronous', `'normal' or 'full'`, synchronous);
  }
  checkNamespace(namespace);
  const first = { id: buildFirstNamespaceId(namespace), name: namespace };
  return createEmbeddedBackend(new LazyFileStorage({ path: resolve(path), synchronous, namespace: first }));
}

const PREFIX = 'file:';

/** Parses `file:./limits.db?synchronous=full`. Without `new URL`, which would resolve a relative path to the root. */
export function parseFileAddress(address: string): Omit<FileOptions, 'namespace'> {
  const [path = '', query = ''] = address.slice(PREFIX.length).split('?');
  const parameters = new URLSearchParams(query);
  for (const key of parameters.keys()) {
    if (key !== 'synchronous')
      throw new ValidationError('store', 'an address with no parameter but `synchronous`', address);
  }
  const synchronous = parameters.get('synchronous');
  if (path === '') throw new ValidationError('store', 'an address such as file:./limits.db', address);
  return synchronous === null ? { path } : { path, synchronous: synchronous as 'normal' | 'full' };
}
