import { type Clock, systemClock } from '../../../../clock.js';
import { ValidationError } from '../../../../core/errors.js';
import { checkEntityId, checkResource } from '../../../../core/identifiers.js';
import type { Int } from '../../../../core/int.js';
import { deadlineIn } from '../../../../machine-time.js';
import { requireOwn } from '../../table/foreign-record.js';
import { buildNamespaceKey } from '../../table/keys.js';
import { decodeNamespace } from '../../table/records.js';
import { REQUEST_MS, readItem, type Table } from '../../client/requests.js';
import { openTransport } from '../../client/open-transport.js';
import type { SdkOptions } from '../../client/sdk-transport.js';
import { openSdkStream, type SdkStreamOptions } from '../worker/sdk-stream.js';
import type { StreamApi } from '../worker/stream-api.js';
import { repairUsage } from './repair-usage.js';

/** Options of `rebuildUsage`. */
export interface RebuildOptions extends SdkOptions, SdkStreamOptions {
  /** The table's name. */
  readonly table: string;
  /** The name of the namespace. */
  readonly namespace: string;
  /** The entity whose usage is corrected. */
  readonly entityId: string;
  /** The resource whose usage is corrected. */
  readonly resource: string;
  /** The source of time. Default: the system's clock, corrected by the store's time. */
  readonly clock?: Clock;
}

/** What `rebuildUsage` has corrected. */
export interface RebuildReport {
  readonly entityId: string;
  readonly resource: string;
  /** The missing usage that was added to the current hour, day and month, in millitokens. */
  readonly addedMilli: ReadonlyMap<string, Int>;
  readonly acquires: number;
  readonly expired: number;
}

/**
 * Repairs the usage totals of one entity and resource after changes were lost from the stream. It compares what the
 * buckets have counted since their creation with the usage records of all months, and adds what is missing to the
 * current windows, because the time of the use is not known. It never subtracts: usage of expired buckets is in the
 * records only. Changes that are still in the stream are counted first, each once.
 */
export async function rebuildUsage(options: RebuildOptions): Promise<RebuildReport> {
  const { table: name, entityId, resource } = options;
  if (typeof name !== 'string' || name === '') throw new ValidationError('table', 'the name of a DynamoDB table', name);
  checkEntityId(entityId);
  checkResource(resource);
  const transport = openTransport(options);
  const table: Table = { name, transport, random: Math.random };
  const clock = options.clock ?? { now: () => transport.storeTimeMs() ?? systemClock.now() };
  let stream: StreamApi | null = null;
  try {
    const found = await readItem(table, buildNamespaceKey(options.namespace), deadlineIn(REQUEST_MS));
    if (found === undefined) throw new ValidationError('namespace', 'a registered namespace', options.namespace);
    const { id: ns, status } = decodeNamespace(requireOwn(table, found));
    if (status !== 'active') throw new ValidationError('namespace', 'an active namespace', options.namespace);
    stream = await openSdkStream(table, options);
    const missing = await repairUsage({ table, stream, ns, entityId, resource, clock });
    return {
      entityId,
      resource,
      addedMilli: missing.consumedMilli,
      acquires: missing.acquires,
      expired: missing.expired,
    };
  } finally {
    stream?.close();
    transport.close();
  }
}
