import type { AdminCall, ConfigChange, EntityRecord } from '../backend.js';
import { compareObject } from '../core/compare-object.js';
import type { ConfigLevel, OnUnavailable } from '../core/config.js';
import { type Plan, type Step, stepOf } from '../core/diff.js';
import { ApplyStopped, isHeadgateError } from '../core/errors.js';
import { Limit } from '../core/limit.js';
import { type Fields, fieldsOfRecord } from '../core/managed-fields.js';
import { describeTarget } from '../core/managed.js';
import { callStore, changeStore, type Context } from './context.js';
import type { ApplyOptions, ManifestPlan } from './manifest-api.js';
import { makePlan, turn, viewOf } from './manifest-plan.js';

/** Plans, then makes one change after the other. */
export async function applyManifest(context: Context, data: unknown, options: ApplyOptions): Promise<ManifestPlan> {
  const plan = await makePlan(context, data);
  await options.confirm?.(viewOf(plan));
  try {
    await makeChanges(context, plan, options);
  } finally {
    // Limits and parents are remembered: this process must see its own changes at once.
    context.resolver.cache.outdate();
  }
  return viewOf(plan);
}

async function makeChanges(context: Context, { steps, marks }: Plan, { onProgress }: ApplyOptions): Promise<void> {
  const total = steps.length;
  let what = '';
  let applied = 0;
  try {
    for (const step of steps) {
      const { change } = step;
      what = `${change.action} ${describeTarget(change.target)}`;
      await makeChange(context, step);
      applied += 1;
      onProgress?.({ change, done: applied, total });
      await turn();
    }
    what = 'noting what is owned';
    for (const mark of marks) {
      await callStore(context, what, (call) => context.backend.managed.mark(call, mark));
      await turn();
    }
  } catch (error) {
    throw isHeadgateError(error) ? new ApplyStopped(error, what, { applied, total }) : error;
  }
}

async function makeChange(context: Context, step: Step): Promise<void> {
  const { target, writes, mark } = step;
  if (target.kind === 'record') return writeRecord(context, step, target.entityId);
  await changeStore(context, `writing ${describeTarget(target)}`, (call) =>
    context.backend.config.write({ ...call, managed: mark }, target, configChangeOf(target, writes)),
  );
}

/** A field that is not written stays, whoever set it. */
function configChangeOf(level: ConfigLevel, writes: Fields): ConfigChange {
  const limits = writes['limits'] as readonly string[] | null | undefined;
  return {
    ...(limits === undefined ? {} : { limits: limits?.map((text) => Limit.parse(text)) ?? null }),
    ...(level.kind === 'system' && 'onUnavailable' in writes
      ? { onUnavailable: writes['onUnavailable'] as OnUnavailable | null }
      : {}),
  };
}

/** Attempts against others who change the same record at the same time. */
const MOST_ATTEMPTS = 5;

/** Compares again with what another process has made of the record meanwhile, and does what is left to do. */
async function writeRecord(context: Context, planned: Step, id: string): Promise<void> {
  const { entities, managed } = context.backend;
  let step = planned;
  for (let attempt = 1; ; attempt++) {
    try {
      await sendRecord(context, step, id);
      return;
    } catch (error) {
      if (attempt === MOST_ATTEMPTS || !isRace(error, step)) throw error;
    }
    const record = await callStore(context, 'reading an entity', (call) => entities.read(call, id));
    const compared = compareObject(step.target, { ...step.views, live: record && fieldsOfRecord(record) });
    const next = stepOf(compared, new Map(record === undefined ? [] : [[id, record]]));
    if (next === null) {
      await callStore(context, 'noting what is owned', (call) => managed.mark(call, compared.mark));
      return;
    }
    step = next;
  }
}

/** A record that cannot be deleted has children: that does not pass by looking again. */
function isRace(error: unknown, { change }: Step): boolean {
  if (isHeadgateError(error, 'entity.conflict')) return change.action === 'update';
  return isHeadgateError(error, 'entity.exists') || isHeadgateError(error, 'entity.missing');
}

async function sendRecord(context: Context, step: Step, id: string): Promise<void> {
  const { entities } = context.backend;
  const { final, writes, seenVersion } = step;
  await changeStore(context, `writing ${describeTarget(step.target)}`, async (call) => {
    const marked: AdminCall = { ...call, managed: step.mark };
    if (final === null) await entities.delete(marked, id);
    else if (seenVersion === null) await entities.create(marked, { id, ...recordOf(final) });
    else await entities.update(marked, id, recordOf(writes), seenVersion);
  });
}

type RecordFields = Pick<EntityRecord, 'name' | 'parentId' | 'cascade' | 'metadata'>;

/** In the words of the port; of some fields those that are given. */
function recordOf({ parent, ...fields }: Fields): RecordFields {
  return { ...fields, ...(parent === undefined ? {} : { parentId: parent }) } as RecordFields;
}
