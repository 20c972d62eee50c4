import type { Awaitable } from '../../backend.js';
import { ValidationError } from '../../core/errors.js';
import { checkEntityId, checkResource } from '../../core/identifiers.js';
import { checkKnownFields } from '../../core/known-fields.js';
import { checkWhole } from '../../core/limit.js';
import { checkReason, FOREVER_MS, isRunning, type Pause, type PauseChange, type PausedBy } from '../../core/pause.js';
import type { EpochMs } from '../../core/units.js';
import { copyOf } from '../acquire/request.js';
import { changeStore, type Context, endOfCall } from '../context.js';
import { notePaused, noteResumed } from '../outage/note-pause.js';

/** Which pause to end. */
export interface ResumeRequest {
  readonly entityId: string;
  /** Only the entity's bucket of this resource. Left out: the entity itself, on every resource. */
  readonly resource?: string;
}

/** Give either `untilMs` or `forMs`. `forever`: until `resume`. */
export interface PauseRequest extends ResumeRequest {
  /** The instant at which asks are decided again, in milliseconds since the epoch. */
  readonly untilMs?: EpochMs | 'forever';
  /** How long the pause lasts. */
  readonly forMs?: number | 'forever';
  /** The text that callers get with the denial, and that the audit record keeps: 1 to 256 characters in one line. */
  readonly reason: string;
}

const RESUME_FIELDS: ReadonlySet<string> = new Set(['entityId', 'resource'] satisfies (keyof ResumeRequest)[]);
const PAUSE_FIELDS: ReadonlySet<string> = new Set([...RESUME_FIELDS, 'untilMs', 'forMs', 'reason'] satisfies string[]);

/** Pauses, and returns the pause that applies: the stored one if that ends later. */
export async function pause(opened: () => Awaitable<Context>, given: PauseRequest): Promise<PausedBy> {
  const request = copyOf(given);
  const context = await opened();
  checkTarget(request, PAUSE_FIELDS);
  checkReason(request.reason);
  const wanted: Pause = { endMs: endOf(request, context.clock.now()), reason: request.reason };
  const { after } = await change(context, request, wanted);
  const { entityId, resource = null } = request;
  return notePaused(context, { entityId, resource, pause: after ?? wanted });
}

/** Ends a pause. False: there was none, or it had ended. */
export async function resume(opened: () => Awaitable<Context>, given: ResumeRequest): Promise<boolean> {
  const request = copyOf(given);
  const context = await opened();
  checkTarget(request, RESUME_FIELDS);
  const { before } = await change(context, request, null);
  const isResumed = isRunning(before, context.clock.now());
  const { entityId, resource = null } = request;
  noteResumed(context, { entityId, resource }, isResumed);
  return isResumed;
}

async function change(
  context: Context,
  { entityId, resource }: ResumeRequest,
  wanted: Pause | null,
): Promise<PauseChange> {
  const where = wanted === null ? 'resuming' : 'pausing';
  try {
    if (resource === undefined) {
      return await changeStore(context, where, (call) => context.backend.entities.pause(call, entityId, wanted));
    }
    const nowMs = context.clock.now();
    const { resolved } = await context.resolver.resolve(entityId, resource, nowMs, endOfCall(context, nowMs));
    const { limits } = resolved;
    // A bucket without limits must be older than every config, so that the first ask brings its limits.
    const version = limits.length === 0 ? { sequence: 0, openedAtMs: 0 } : resolved.version;
    const bucket = { entityId, resource, limits, version };
    return await changeStore(context, where, (call) => context.backend.buckets.pause(call, bucket, wanted));
  } finally {
    // Pauses are cached with the configs. This process must see its own change at once, also if only a part was made.
    context.resolver.cache.outdate();
  }
}

function checkTarget(request: unknown, known: ReadonlySet<string>): asserts request is ResumeRequest {
  if (typeof request !== 'object' || request === null) throw new ValidationError('request', 'an object', request);
  checkKnownFields('request', request, known);
  const { entityId, resource } = request as ResumeRequest;
  checkEntityId(entityId);
  if (resource !== undefined) checkResource(resource);
}

/** Before the year 10,000, because later instants have another form as text. */
const LAST_MS: EpochMs = Date.UTC(9999, 11, 31);

function endOf({ untilMs, forMs }: PauseRequest, nowMs: EpochMs): EpochMs {
  if ((untilMs === undefined) === (forMs === undefined)) {
    throw new ValidationError('untilMs', 'given, or `forMs` given, and not both', untilMs);
  }
  if (untilMs === 'forever' || forMs === 'forever') return FOREVER_MS;
  if (untilMs !== undefined) {
    checkWhole('untilMs', untilMs, nowMs + 1, LAST_MS);
    return untilMs;
  }
  checkWhole('forMs', forMs, 1, LAST_MS - nowMs);
  return nowMs + forMs;
}
