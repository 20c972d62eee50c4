import { rename, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { HeadgateError } from '../../core/errors.js';
import { describeTarget } from '../../core/manifest/managed.js';
import type { ManifestPlan } from '../../limiter/manifest/manifest-types.js';
import { formatCount } from '../../visualize/format.js';
import type { StoreAction } from '../define-command.js';
import type { ManifestFile } from '../manifest-file.js';
import { printManifest } from '../print-manifest.js';
import { renderPlan } from '../render/plan.js';
import type { Result } from '../result.js';
import type { Session } from '../session.js';
import type { LimitsExportShape, LimitsPlanShape } from '../shapes.js';

/** An action on a namespace and the file that describes it. */
export type LimitsAction = (session: Session, file: ManifestFile) => Promise<Result<LimitsPlanShape>>;

const DIFFERS_EXIT = 2;

export const planLimits: LimitsAction = async (session, file) => {
  const plan = await readPlan(session, file);
  return { data: shapeOf(plan), text: (style) => renderPlan(plan, style, 'plan') };
};

export const diffLimits: LimitsAction = async (session, file) => {
  const plan = await readPlan(session, file);
  const differs = plan.changes.length > 0 || plan.drift.length > 0;
  return {
    data: shapeOf(plan),
    text: (style) => renderPlan(plan, style, 'plan'),
    exitCode: differs ? DIFFERS_EXIT : 0,
  };
};

export const applyLimits: LimitsAction = async (session, file) => {
  const { limiter, progress } = session;
  const reading = watch(session);
  const done = await limiter.manifest
    .apply(file.data, {
      confirm: async (plan) => {
        reading.end();
        await confirmDeletions(session, plan);
      },
      onProgress: ({ done: count, total }) => progress(`${formatCount(count)} of ${formatCount(total)} changes`),
    })
    .finally(() => reading.end());
  return { data: shapeOf(done), text: (style) => renderPlan(done, style, 'done') };
};

export const exportLimits: StoreAction<{ readonly output?: string }> = async (
  session,
  _,
  { output },
): Promise<Result<LimitsExportShape>> => {
  const reading = watch(session);
  const data = await session.limiter.manifest.export().finally(() => reading.end());
  const text = printManifest(data);
  if (output === undefined || output === '-') return { data, text: () => text.trimEnd() };
  if (existsSync(output)) await session.confirm(`replaces ${output}`);
  await replaceFile(output, text);
  const entities = countOf(data.entities, 'entity', 'entities');
  const resources = countOf(data.resources, 'resource', 'resources');
  return { data, text: (style) => `${style.green('written')}: ${output} (${entities}, ${resources})` };
};

function countOf(items: object | null | undefined, one: string, many: string): string {
  const count = Object.keys(items ?? {}).length;
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}

async function readPlan(session: Session, { data }: ManifestFile): Promise<ManifestPlan> {
  const reading = watch(session);
  return session.limiter.manifest.plan(data).finally(() => reading.end());
}

const LOOK_EVERY_MS = 200;

/** Says that the namespace is being read, where that takes long, until it is told to end. */
function watch({ progress, namespace }: Session): { readonly end: () => void } {
  const timer = setInterval(() => progress(`reading namespace ${namespace}`), LOOK_EVERY_MS);
  return { end: () => clearInterval(timer) };
}

const NAMED = 3;

async function confirmDeletions({ confirm, namespace }: Session, { changes }: ManifestPlan): Promise<void> {
  const deleted = changes.filter(({ action }) => action === 'delete').map(({ target }) => describeTarget(target));
  if (deleted.length === 0) return;
  const more = deleted.length > NAMED ? ` and ${formatCount(deleted.length - NAMED)} more` : '';
  await confirm(`deletes ${deleted.slice(0, NAMED).join(', ')}${more} in namespace ${namespace}`);
}

/** Whoever reads the file meanwhile sees the old one or the new one, whole. */
async function replaceFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${process.pid}.tmp`;
  try {
    await writeFile(draft, text, { flag: 'wx' });
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    const { code } = error as { readonly code?: string };
    throw new HeadgateError('input.invalid', `${path} cannot be written: ${String(code ?? error)}`, { cause: error });
  }
}

function shapeOf({ changes, drift, unchanged }: ManifestPlan): LimitsPlanShape {
  return { changes, drift, unchanged };
}
