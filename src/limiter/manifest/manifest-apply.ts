import type { AdminCall, ConfigChange, EntityRecord } from '../../backend.js';
import type { Comparison } from '../../core/manifest/compare-object.js';
import type { ConfigLevel, OnUnavailable } from '../../core/config/config.js';
import { compareLive, type LiveState, type ApplyPlan } from '../../core/manifest/diff.js';
import { ApplyStopped, isHeadgateError, unavailableKind } from '../../core/errors.js';
import { Limit } from '../../core/limit.js';
import type { Fields } from '../../core/manifest/managed-fields.js';
import { buildManagedKey, describeTarget, type ManagedTarget } from '../../core/manifest/managed.js';
import { decodePause, isRunning, type Pause, type PauseData } from '../../core/pause.js';
import { emitConfigChange } from '../events/emit.js';
import { callStore, changeStore, type Context } from '../context.js';
import { notePaused, noteResumed } from '../outage/note-pause.js';
import type { ApplyOptions, ManifestPlan } from './manifest-types.js';
import { fieldsOfMark, makePlan, turn, viewOf } from './manifest-plan.js';

/** Plans, then makes one change after the other. Returns the changes that were made. */
export async function applyManifest(context: Context, data: unknown, options: ApplyOptions): Promise<ManifestPlan> {
  const plan = await makePlan(context, data);
  await options.confirm?.(viewOf(plan));
  try {
    const written = await makeChanges(context, plan, options);
    const spared = written.filter(({ change, views }) => change === null && views.wanted !== undefined);
    return {
      changes: written.flatMap(({ change }) => change ?? []),
      drift: plan.drift,
      unchanged: plan.unchanged + spared.length,
    };
  } finally {
    // Limits and parents are cached. This process must see its own changes at once.
    context.resolver.cache.outdate();
  }
}

async function makeChanges(
  context: Context,
  { steps, unmarked }: ApplyPlan,
  { onProgress }: ApplyOptions,
): Promise<readonly Comparison[]> {
  const written: Comparison[] = [];
  const total = steps.length;
  let what = '';
  try {
    for (const step of steps) {
      const { change } = step;
      what = `${change.action} ${describeTarget(change.target)}`;
      const settled = await settle(context, step);
      written.push(settled);
      onProgress?.({ change: settled.change ?? change, done: written.length, total });
      await turn();
    }
    for (const comparison of unmarked) {
      what = `noting ${describeTarget(comparison.target)}`;
      await settle(context, comparison);
      await turn();
    }
  } catch (error) {
    throw isHeadgateError(error) ? new ApplyStopped(error, what, { applied: written.length, total }) : error;
  }
  return written;
}

/** How often a change is tried when other processes change the same object at the same time. */
const MAX_ATTEMPTS = 5;

/**
 * Changes one object to what the file declares. Compares again if another process has changed the object since the plan, and
 * returns the comparison that was written.
 */
async function settle(context: Context, planned: Comparison): Promise<Comparison> {
  let comparison = planned;
  for (let attempt = 1; ; attempt++) {
    try {
      await send(context, comparison);
      return comparison;
    } catch (error) {
      if (attempt === MAX_ATTEMPTS || !isRace(error)) throw error;
      const again = await compareAgain(context, comparison);
      // The same version means that no race occurred: the entity has children and cannot be deleted.
      if (isHeadgateError(error, 'entity.conflict') && again.seenVersion === comparison.seenVersion) throw error;
      comparison = again;
    }
  }
}

function isRace(error: unknown): boolean {
  const kind = unavailableKind(error);
  if (kind !== null) return kind === 'contended';
  return (['entity.exists', 'entity.missing', 'entity.conflict'] as const).some((code) => isHeadgateError(error, code));
}

async function compareAgain(context: Context, { target, views }: Comparison): Promise<Comparison> {
  const { managed } = context.backend;
  const mark = await callStore(context, 'reading a mark', (call) => managed.read(call, buildManagedKey(target)));
  const live = await readLive(context, target);
  return compareLive(target, { wanted: views.wanted, owned: mark && fieldsOfMark(mark) }, live, context.clock.now());
}

async function readLive(context: Context, target: ManagedTarget): Promise<LiveState> {
  const { config, entities } = context.backend;
  if (target.kind === 'record') {
    const { entityId } = target;
    const record = await callStore(context, 'reading an entity', (call) => entities.read(call, entityId));
    return { configs: new Map(), records: new Map(record === undefined ? [] : [[entityId, record]]) };
  }
  const stored = await callStore(context, 'reading a config', (call) => config.read(call, target));
  return { configs: new Map(stored === undefined ? [] : [[buildManagedKey(target), stored]]), records: new Map() };
}

/** Makes one write: the change, if there is any, and its mark. */
async function send(context: Context, comparison: Comparison): Promise<void> {
  const { target, change, writes, mark, final, seenVersion } = comparison;
  const { config, entities, managed } = context.backend;
  const where = `writing ${describeTarget(target)}`;
  if (change === null) {
    await callStore(context, where, (call) => managed.mark(call, mark));
    return;
  }
  await changeStore(context, where, async (call) => {
    const marked: AdminCall = { ...call, managed: mark };
    if (target.kind !== 'record') return config.write(marked, target, configChangeOf(target, writes));
    const { entityId: id } = target;
    if (final === null) return entities.delete(marked, id, seenVersion);
    if (seenVersion === null) return entities.create(marked, { id, ...newRecordOf(final) });
    return entities.update(marked, id, recordOf(writes), seenVersion);
  });
  if (target.kind !== 'record') emitConfigChange(context, target);
  else if (writes['paused'] !== undefined) notePauseOf(context, target.entityId, comparison);
}

/** A pause by the file has the same effects in this process as one by `limiter.pause`. */
function notePauseOf(context: Context, entityId: string, { writes, views }: Comparison): void {
  const { pause = null } = recordOf(writes);
  const before = recordOf(views.live ?? {}).pause;
  const nowMs = context.clock.now();
  // Pauses are cached with the configs.
  context.resolver.cache.outdate();
  if (isRunning(pause, nowMs)) notePaused(context, { entityId, resource: null, pause });
  else noteResumed(context, { entityId, resource: null }, isRunning(before, nowMs));
}

/** Leaves out fields that are not written, so that their stored values stay. */
function configChangeOf(level: ConfigLevel, writes: Fields): ConfigChange {
  const limits = writes['limits'] as readonly string[] | null | undefined;
  return {
    ...(limits === undefined ? {} : { limits: limits?.map((text) => Limit.parse(text)) ?? null }),
    ...(level.kind === 'system' && 'onUnavailable' in writes
      ? { onUnavailable: writes['onUnavailable'] as OnUnavailable | null }
      : {}),
  };
}

type RecordFields = Pick<EntityRecord, 'name' | 'parentId' | 'cascade' | 'metadata'>;

/** The given fields with the names of the port. */
function recordOf({ parent, paused, ...fields }: Fields): RecordFields & { readonly pause?: Pause | null } {
  return {
    ...fields,
    ...(parent === undefined ? {} : { parentId: parent }),
    ...(paused === undefined ? {} : { pause: paused === null ? null : decodePause(paused as PauseData) }),
  } as RecordFields;
}

/** A new record leaves out a bypass that is off, and a pause that there is not. */
function newRecordOf({ bypass, ...final }: Fields): RecordFields & Pick<EntityRecord, 'pause'> {
  const { pause, ...fields } = recordOf(bypass === true ? { ...final, bypass } : final);
  return pause === undefined || pause === null ? fields : { ...fields, pause };
}
