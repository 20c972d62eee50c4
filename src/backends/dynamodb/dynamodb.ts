import type { Awaitable, Backend, Call, ConsumeRequest } from '../../backend.js';
import { BucketCache } from './acquire/bucket-shards.js';
import { charge } from './acquire/charge.js';
import { adjust, operate } from './acquire/change-level.js';
import { consume } from './acquire/consume.js';
import { deadlineIn } from '../../machine-time.js';
import { extend } from './acquire/extend.js';
import { everyLimit, judgeLevel } from './bucket/judge-level.js';
import { DynamoDBExecutor } from './expressions/dynamodb-executor.js';
import { PRESSURE, type PressureOptions } from './bucket/pressure.js';
import { InFlight, type Table } from './client/requests.js';
import { openTable } from './schema/open-table.js';
import { createGates, type Pass, registryWithVersionCheck } from './schema/gates.js';
import { openTransport } from './client/open-transport.js';
import type { LoadSdk, SdkOptions } from './client/sdk-transport.js';
import { errorOfNews } from './client/store-clock.js';
import { createAuditStore } from './stores/audit.js';
import { createBucketPause } from './stores/buckets/bucket-pause.js';
import { createBucketReset } from './stores/buckets/bucket-reset.js';
import { createBucketStore } from './stores/buckets/buckets.js';
import { createConfigStore } from './stores/config.js';
import { createEntityStore } from './stores/entities.js';
import { createLeaseStore } from './stores/leases/leases.js';
import { createManagedStore } from './stores/managed.js';
import { createNamespaceStore } from './stores/namespaces.js';
import { RecentWrites } from './stores/recent-writes.js';
import { createUsageStore } from './stores/usage.js';
import { type NamedTable, tableNameOf } from './table/table-name.js';
import type { Transport } from './client/transport.js';

/** `table` is the table's name. `tableName`, the option of `createTable`, is accepted too. */
export type DynamoDBOptions = SdkOptions & NamedTable;

/** Options for tests and for the entry point for bundlers. */
export interface DynamoDBInternals {
  readonly transport?: Transport;
  readonly loadSdk?: LoadSdk;
  readonly random?: () => number;
  readonly pressure?: PressureOptions;
  /** The schema version of this client, for tests of mixed versions. */
  readonly schemaVersion?: number;
}

/** A store in one Amazon DynamoDB table, which processes on many machines share. */
export function createDynamoDBBackend(options: DynamoDBOptions, internals: DynamoDBInternals = {}): Backend {
  const name = tableNameOf(options, 'table');
  const transport = internals.transport ?? openTransport(options, internals.loadSdk);
  const random = internals.random ?? Math.random;
  const { region, endpoint } = options;
  const table: Table = { name, transport, random, inFlight: new InFlight(), address: { region, endpoint } };
  const buckets = new BucketCache((ns) => new DynamoDBExecutor(table, ns), random, internals.pressure ?? PRESSURE);
  const gate = createGates(table, internals.schemaVersion);
  const { versions } = gate;
  const ownWrites = new RecentWrites();

  /** Resolves once the namespace is known to be active. undefined: that is cached. */
  const admit = (call: Call): Promise<void> | undefined => {
    const news = transport.takeClockNews?.() ?? null;
    if (news !== null) call.tuning?.onError?.(errorOfNews(news), 'the time of the store');
    const checked = isAdmitted(call, gate.pass) ? undefined : gate.check(call);
    return checked instanceof Promise ? checked : undefined;
  };
  const inNamespace = <T>(call: Call, work: () => Awaitable<T>): Awaitable<T> => {
    const admitted = admit(call);
    return admitted === undefined ? work() : admitted.then(work);
  };

  return {
    name: 'dynamodb',
    ephemeral: false,
    load: async () => transport.load?.(),
    async open(timeoutMs) {
      versions.remember(await openTable(table, deadlineIn(timeoutMs), internals.schemaVersion));
    },
    async close() {
      await buckets.finish();
      transport.close();
    },
    storeTimeMs: () => transport.storeTimeMs(),

    consume: (call, request) => {
      const admitted = admit(call);
      if (admitted === undefined && !isPortable(request)) return consume(buckets, call, request);
      return (async () => {
        await admitted;
        // Clients of schema version 1 would take the holder of a portable lease for that of another lease.
        if (isPortable(request)) await versions.require(call, 'a portable lease');
        return consume(buckets, call, request);
      })();
    },
    adjust: (call, request) => inNamespace(call, () => adjust(buckets, call, request)),
    charge: (call, request) =>
      inNamespace(call, async () => {
        if (request.receipt !== null) await versions.require(call, 'a charge or credit with an id');
        return charge(buckets, call, request);
      }),
    operate: (call, request) => inNamespace(call, () => operate(buckets, call, request)),
    extend: (call, request) => inNamespace(call, () => extend(buckets, call, request)),
    peek: (call, levels) =>
      inNamespace(call, async () => {
        const images = await buckets.read(call.namespaceId, levels, deadlineIn(call.timeoutMs));
        return levels.map((level, at) => judgeLevel(images[at] ?? [], level, everyLimit(level), call.nowMs));
      }),

    config: createConfigStore(table, gate, versions, ownWrites),
    entities: createEntityStore(table, gate, versions, ownWrites),
    namespaces: registryWithVersionCheck(createNamespaceStore(table, gate), versions),
    audit: createAuditStore(table, gate),
    usage: createUsageStore(table, gate),
    managed: createManagedStore(table, gate),
    buckets: createBucketStore(table, gate, {
      reset: createBucketReset(table, buckets, gate),
      pause: createBucketPause(table, buckets, { gate, versions, ownWrites }),
    }),
    leases: createLeaseStore(table, gate, buckets),
  };
}

function isAdmitted({ namespaceId, nowMs }: Call, pass: Pass): boolean {
  return namespaceId === pass.namespaceId && nowMs >= pass.fromMs && nowMs < pass.untilMs;
}

function isPortable({ leaseId, levels }: ConsumeRequest): boolean {
  return leaseId !== null && levels.some(({ holder }) => holder?.portable !== undefined);
}
