import type { Awaitable, RegistryCall } from '../../../backend.js';
import { InfrastructureError, SchemaMismatch } from '../../../core/errors.js';
import type { EpochMs } from '../../../core/units.js';
import { deadlineIn } from '../../../machine-time.js';
import { storeArgument } from '../address.js';
import type { Table } from '../client/requests.js';
import { checkSchema, type TableSchema } from './schema.js';
import { SCHEMA_VERSION } from './schema-version.js';

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
/** The version from which on pauses, portable leases, receipts, options of limits and bypasses may be stored. */
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
