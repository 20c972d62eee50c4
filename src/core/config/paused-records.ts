/** What every store does to an entity's record, and to its audit records, when the entity or a bucket is paused. */
import { VersionConflict } from '../errors.js';
import { encodePause, isRunning, type Pause, type PauseChange } from '../pause.js';
import type { EpochMs } from '../units.js';

type PauseAction = `${'entity' | 'bucket'}.${'pause' | 'resume'}`;

/** The action, subject, `before` and `after` of the audit record. */
export function auditOfPause(
  of: 'entity' | 'bucket',
  entityId: string,
  { before, after }: PauseChange,
  resource?: string,
): readonly [action: PauseAction, subject: string, before: unknown, after: unknown] {
  const show = (pause: Pause | null): unknown => ({
    ...(resource === undefined ? {} : { resource }),
    paused: pause === null ? null : encodePause(pause),
  });
  return [`${of}.${after === null ? 'resume' : 'pause'}`, entityId, show(before), show(after)];
}

/** The record of an entity that had none when it was paused. Its first version is 1 once the pause is in it. */
export function newPausedEntity(id: string, nowMs: EpochMs) {
  return { id, name: null, parentId: null, cascade: false, metadata: {}, createdAtMs: nowMs, version: 0 };
}

/** undefined: the pause of the record stays. */
export function withPause<T>(record: T & { readonly pause?: Pause }, pause: Pause | null | undefined): T & Paused {
  if (pause === undefined) return record;
  const { pause: _, ...rest } = record;
  return (pause === null ? rest : { ...rest, pause }) as T & Paused;
}

interface Paused {
  readonly pause?: Pause;
}

/** For a caller that has not seen the record: without the record, a revoked key would be admitted again. */
export function refusePaused({ id, pause }: { readonly id: string; readonly pause?: Pause }, nowMs: EpochMs): void {
  if (isRunning(pause, nowMs)) throw new VersionConflict(id, 'it is paused: resume it before you delete it');
}
