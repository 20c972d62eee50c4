import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname } from 'node:path';
import type { Backend } from '../../backend.js';
import { file, parseFileAddress } from '../../backends/embedded/file/file.js';
import { memory } from '../../backends/embedded/memory.js';
import { InfrastructureError } from '../../core/errors.js';
import { checkNamespace } from '../../core/identifiers.js';
import { reasonOf } from '../../core/reason-of.js';
import type { LimiterOptions } from '../../limiter/options.js';
import { RateLimiter } from '../../limiter/rate-limiter.js';
import { namespaceIn } from '../../limiter/store-url.js';
import type { GlobalOptions } from './global-options.js';

interface NamedStore {
  readonly limiter: RateLimiter;
  readonly address: string;
  readonly namespace: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** No request waits for an operator's command, so that it may take longer than an acquire in a server. */
const TIMEOUTS = { callMs: 10_000, acquireMs: 10_000 };

/** The limiter for a command; its first call opens the store. `tuning`: options of the limiter besides the global ones. */
export function openStore(
  options: GlobalOptions,
  env: Environment,
  note: (text: string) => void,
  tuning: LimiterOptions = { timeouts: TIMEOUTS },
): NamedStore {
  const named = options.store ?? (env['HEADGATE_URL'] || undefined);
  const address = named ?? 'memory:';
  const namespace = options.namespace ?? namespaceIn(address) ?? (env['HEADGATE_NAMESPACE'] || 'default');
  const principal = options.principal || env['HEADGATE_PRINCIPAL'] || osUser();
  if (named === undefined)
    note('no store is named (--store or HEADGATE_URL): the store is in memory, and ends with the command');
  const limiter = new RateLimiter(storeOf(address, namespace, note), {
    namespace,
    onError: (error, where) => note(`${where}: ${reasonOf(error)}`),
    ...(principal === undefined ? {} : { principal, caller: principal }),
    ...tuning,
  });
  return { limiter, address, namespace };
}

/**
 * A new file gets the namespace `default`, not the given one, which may be misspelt. Only `namespace create` creates
 * another.
 */
function storeOf(address: string, namespace: string, note: (text: string) => void): string | Backend {
  checkNamespace(namespace);
  // A backend instead of the address: the address would print a warning, which repeats the note.
  if (address === 'memory:') return memory({ namespaces: [namespace] });
  if (!address.startsWith('file:')) return address;
  const place = parseFileAddress(address);
  const folder = dirname(place.path);
  if (!existsSync(folder)) {
    throw new InfrastructureError('infrastructure.file', `Cannot open ${place.path}: there is no folder ${folder}`);
  }
  if (!existsSync(place.path)) note(`${place.path} does not exist yet: the first change creates it`);
  return file({ ...place, namespace: 'default' });
}

/** In some containers the user has no name. */
function osUser(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}
