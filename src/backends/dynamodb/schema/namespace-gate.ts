import type { Awaitable, Call, NamespaceRecord } from '../../../backend.js';
import { requireActive } from '../../../core/config/namespaces.js';
import type { EpochMs } from '../../../core/units.js';
import { deadlineIn } from '../../../machine-time.js';
import { readItem, type Table } from '../client/requests.js';
import { requireOwn } from '../table/foreign-record.js';
import { buildNamespaceIdKey } from '../table/keys.js';
import { decodeNamespace } from '../table/records.js';

/** Admits calls to active namespaces only. Caches each namespace for a minute. */
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

const TTL_MS = 60_000;

/** From this fraction of its TTL, an entry is refreshed in the background while it is still used. */
const REFRESH_FROM = 0.8;

/** More namespaces than one process uses; beyond that the cache is cleared. */
const MAX_KNOWN = 10_000;

/** `onChange` is called when a namespace was read or dropped from the cache. */
export function createNamespaceGate(table: Table, onChange: () => void = () => {}): NamespaceGate {
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
      if (entry === undefined || ageMs < 0 || ageMs >= TTL_MS) {
        return read(call).then((namespace) => requireActive(namespace, call.namespaceId));
      }
      // If this fails, the check at the end of the TTL fails too, and its caller gets the error.
      if (ageMs >= TTL_MS * REFRESH_FROM && !reading.has(call.namespaceId)) read(call).catch(() => {});
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
    nextReadMs: (namespaceId) => (known.get(namespaceId)?.atMs ?? -Infinity) + TTL_MS * REFRESH_FROM,
  };
}
