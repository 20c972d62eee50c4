import type { Awaitable, Call, NamespaceRecord, NamespaceStore, RegistryCall } from '../../../backend.js';
import { InfrastructureError, SchemaMismatch } from '../../../core/errors.js';
import type { EpochMs } from '../../../core/units.js';
import { storeArgument } from '../address.js';
import { deadlineIn } from '../../../machine-time.js';
import { readItem, type Table } from '../client/requests.js';
import { checkSchema, type TableSchema } from './schema.js';
import { SCHEMA_VERSION } from './schema-version.js';
import { requireActive } from '../../../core/config/namespaces.js';
import { requireOwn } from '../table/foreign-record.js';
import { buildNamespaceIdKey } from '../table/keys.js';
import { decodeNamespace } from '../table/records.js';

/** Refuses calls of this client once the table needs a newer one, and features that need a newer table. */
export interface VersionGate {
  /** Keeps what was read when the table was opened. */
  remember(schema: TableSchema): void;
  /** Throws or rejects with SchemaMismatch if the table needs a newer client. Returns synchronously while the store is in use. */
  check(call: RegistryCall): Awaitable<void>;
  /** Throws or rejects unless `what` may be written: records that clients of version 1 would misread. */
  require(call: RegistryCall, what: string): Awaitable<void>;
  /** Until then `check` reads nothing. */
  readonly nextReadMs: EpochMs;
}

/** From this age the version record is read again in the background. */
const REREAD_MS = 60_000;
/** From this age a call waits until the record was read. */
const EXPIRED_MS = 120_000;
/** A read in the background that failed is repeated after this time. */
const RETRY_MS = 5_000;
/** A client that has not read the raised version writes nothing more after `EXPIRED_MS` and the deadline of its last call. */
const SETTLED_MS = EXPIRED_MS + 30_000;
/** The version from which on pauses, portable leases and receipts may be stored. */
const FEATURE_VERSION = 2;

/** `ours` is the version of this client. `onRead` is called when the record was read. */
export function createVersionGate(table: Table, ours = SCHEMA_VERSION, onRead: () => void = () => {}): VersionGate {
  let schema: TableSchema | null = null;
  let refusal: SchemaMismatch | null = null;
  let readAtMs: EpochMs | null = null;
  let tryAgainAtMs: EpochMs = -Infinity;
  let reading: Promise<void> | null = null;

  const read = (call: RegistryCall): Promise<void> => {
    reading ??= readAnew(call).finally(() => {
      reading = null;
    });
    return reading;
  };

  const readAnew = async ({ nowMs, timeoutMs }: RegistryCall): Promise<void> => {
    try {
      schema = await checkSchema(table, deadlineIn(timeoutMs), ours);
      refusal = null;
    } catch (error) {
      if (!(error instanceof SchemaMismatch)) throw error;
      refusal = error;
    }
    readAtMs = nowMs;
    onRead();
  };

  const throwRefusal = (): void => {
    if (refusal !== null) throw refusal;
  };

  const readInBackground = (call: RegistryCall): void => {
    if (reading !== null || call.nowMs < tryAgainAtMs) return;
    read(call).catch((error: unknown) => {
      tryAgainAtMs = call.nowMs + RETRY_MS;
      call.tuning?.onError?.(error, 'reading the version of the table');
    });
  };

  const requireRaised = (call: RegistryCall, what: string): void => {
    throwRefusal();
    if (schema === null || schema.version < FEATURE_VERSION) throw notRaised(table, schema?.version ?? 1, what);
    const fromMs = (schema.raisedAtMs ?? -Infinity) + SETTLED_MS;
    if (call.nowMs < fromMs) throw justRaised(table, what, fromMs);
  };

  return {
    remember(opened) {
      schema = opened;
    },
    check(call) {
      // The first call follows the opening, which has read the record.
      readAtMs ??= call.nowMs;
      // A call that began before the one that read the record has an earlier time.
      const ageMs = Math.abs(call.nowMs - readAtMs);
      if (ageMs >= EXPIRED_MS) return read(call).then(throwRefusal);
      if (ageMs >= REREAD_MS) readInBackground(call);
      return throwRefusal();
    },
    require(call, what) {
      if (schema !== null && schema.version >= FEATURE_VERSION) return requireRaised(call, what);
      return read(call).then(() => requireRaised(call, what));
    },
    get nextReadMs() {
      return (readAtMs ?? -Infinity) + REREAD_MS;
    },
  };
}

function notRaised(table: Table, version: number, what: string): SchemaMismatch {
  const other = `headgate migrate --store ${storeArgument(table)}`;
  const message = `Table ${table.name} has schema version ${version}, and ${what} needs ${FEATURE_VERSION} (for a table without a stack: ${other})`;
  return new SchemaMismatch(message, `headgate upgrade --table ${table.name}`);
}

function justRaised(table: Table, what: string, fromMs: EpochMs): InfrastructureError {
  const message = `Table ${table.name} was raised to schema version ${FEATURE_VERSION} just now, and older clients may still use it: ${what} works from ${new Date(fromMs).toISOString()} on`;
  return new InfrastructureError('infrastructure.upgrading', message, { retryable: true });
}

/**
 * The namespace that was admitted last, and the times of calls that need no check: until a record must be read again. It
 * ends when a gate has read a record or forgets one.
 */
export interface Pass {
  readonly namespaceId: string | null;
  readonly fromMs: EpochMs;
  readonly untilMs: EpochMs;
}

const NO_PASS: Pass = { namespaceId: null, fromMs: Infinity, untilMs: -Infinity };

/** A gate of namespaces that also checks the version of the table. A warm call compares the pass, and asks no gate. */
export interface Gates extends NamespaceGate {
  readonly versions: VersionGate;
  readonly pass: Pass;
}

export function createGates(table: Table, ours?: number): Gates {
  const endPass = (): void => {
    gates.pass = NO_PASS;
  };
  const versions = createVersionGate(table, ours, endPass);
  const namespaces = createNamespaceGate(table, { onChange: endPass });
  const gates = {
    ...namespaces,
    versions,
    pass: NO_PASS,
    check(call: Call): Awaitable<void> {
      const version = versions.check(call);
      if (version !== undefined) return both(version, async () => namespaces.check(call));
      const namespace = namespaces.check(call);
      if (namespace !== undefined) return namespace;
      const { namespaceId, nowMs: fromMs } = call;
      const untilMs = Math.min(versions.nextReadMs, namespaces.nextReadMs(namespaceId));
      gates.pass = { namespaceId, fromMs, untilMs };
    },
  };
  return gates;
}

/** Both records are read in parallel if both must be read. */
async function both(version: Promise<void>, namespace: () => Promise<void>): Promise<void> {
  await Promise.all([version, namespace()]);
}

/** The registry does not pass the gate of a namespace. */
export function registryWithVersionCheck(store: NamespaceStore, versions: VersionGate): NamespaceStore {
  const checked =
    <C extends RegistryCall, A extends readonly unknown[], T>(method: (call: C, ...args: A) => Awaitable<T>) =>
    (call: C, ...args: A): Awaitable<T> => {
      const version = versions.check(call);
      return version === undefined ? method(call, ...args) : version.then(() => method(call, ...args));
    };
  return {
    register: checked(store.register),
    read: checked(store.read),
    list: checked(store.list),
    orphans: checked(store.orphans),
    delete: checked(store.delete),
    recover: checked(store.recover),
    purge: checked(store.purge),
    audit: checked(store.audit),
  };
}

/** Admits calls to active namespaces only. Caches each namespace for as long as a config is cached. */
export interface NamespaceGate {
  /** Throws or rejects with NamespaceNotFound unless the namespace is active. Returns synchronously if it is cached. */
  check(call: Call): Awaitable<void>;
  /** Caches a record that was read or written elsewhere. */
  remember(namespace: NamespaceRecord, nowMs: EpochMs): void;
  /** Drops the entry of a namespace that this process is about to change, or has changed. */
  forget(namespaceId: string): void;
  /** Until then `check` reads nothing. */
  nextReadMs(namespaceId: string): EpochMs;
}

interface Known {
  /** undefined: there is no such namespace. */
  readonly namespace: NamespaceRecord | undefined;
  readonly atMs: EpochMs;
}

export interface GateOptions {
  readonly ttlMs?: number;
  /** Called when a namespace was read or forgotten. */
  readonly onChange?: () => void;
}

const TTL_MS = 60_000;

/** From this fraction of its TTL, an entry is refreshed in the background while it is still used. */
const REFRESH_FROM = 0.8;

/** More namespaces than one process uses; beyond that the cache is cleared. */
const MAX_KNOWN = 10_000;

export function createNamespaceGate(
  table: Table,
  { ttlMs = TTL_MS, onChange = () => {} }: GateOptions = {},
): NamespaceGate {
  const known = new Map<string, Known>();
  const reading = new Map<string, Promise<NamespaceRecord | undefined>>();
  /** Counts changes by this process: a read that overlaps one may return the state before it. */
  let changes = 0;

  const keep = (id: string, entry: Known): void => {
    if (known.size >= MAX_KNOWN) known.clear();
    known.set(id, entry);
    onChange();
  };

  const read = (call: Call): Promise<NamespaceRecord | undefined> => {
    const { namespaceId: id } = call;
    const answer = reading.get(id) ?? readAnew(call);
    reading.set(id, answer);
    return answer;
  };

  const readAnew = async ({ namespaceId: id, nowMs, timeoutMs }: Call): Promise<NamespaceRecord | undefined> => {
    const before = changes;
    try {
      // Consistent: a process that has just deleted a namespace must not find it active.
      const item = requireOwn(table, await readItem(table, buildNamespaceIdKey(id), deadlineIn(timeoutMs)));
      const namespace = item === undefined ? undefined : decodeNamespace(item);
      if (before === changes) keep(id, { namespace, atMs: nowMs });
      return namespace;
    } finally {
      if (before === changes) reading.delete(id);
    }
  };

  return {
    check(call) {
      const entry = known.get(call.namespaceId);
      const ageMs = entry === undefined ? Infinity : call.nowMs - entry.atMs;
      if (entry === undefined || ageMs < 0 || ageMs >= ttlMs) {
        return read(call).then((namespace) => requireActive(namespace, call.namespaceId));
      }
      // If this fails, the check at the end of the TTL fails too, and its caller gets the error.
      if (ageMs >= ttlMs * REFRESH_FROM && !reading.has(call.namespaceId)) read(call).catch(() => {});
      return requireActive(entry.namespace, call.namespaceId);
    },
    remember(namespace, nowMs) {
      keep(namespace.id, { namespace, atMs: nowMs });
    },
    forget(namespaceId) {
      changes += 1;
      known.delete(namespaceId);
      reading.clear();
      onChange();
    },
    nextReadMs: (namespaceId) => (known.get(namespaceId)?.atMs ?? -Infinity) + ttlMs * REFRESH_FROM,
  };
}
