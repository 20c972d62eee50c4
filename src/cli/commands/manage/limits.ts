import { existsSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { HeadgateError } from '../../../core/errors.js';
import type { ManifestChange } from '../../../core/manifest/compare-object.js';
import { describeTarget } from '../../../core/manifest/managed.js';
import { sameField } from '../../../core/manifest/managed-fields.js';
import type { ManifestPlan } from '../../../limiter/manifest/manifest-types.js';
import { formatCount, printable } from '../../../visualize/format.js';
import {
  addExamples,
  addVerb,
  type CommandContext,
  type Definition,
  onStore,
  type StoreAction,
} from '../../run/define-command.js';
import type { GlobalOptions } from '../../run/global-options.js';
import type { ManifestFile } from '../../limits/manifest-file.js';
import type { Result } from '../../run/result.js';
import type { Session } from '../../run/session.js';
import type { Style } from '../../terminal/terminal.js';
import type { LimitsExportShape, LimitsPlanShape } from './limits-shapes.js';

export const define: Definition = (limits, context) => {
  addExamples(limits, ['limits export -o limits.yaml', 'limits plan -f limits.yaml', 'limits apply -f limits.yaml']);
  addFile(
    addVerb(limits, {
      usage: 'plan',
      summary: 'Show what apply would change, and what was changed manually',
      examples: ['limits plan -f limits.yaml', 'limits plan -f limits.yaml --json'],
    }),
  ).action(onFile(context, planLimits));
  addFile(
    addVerb(limits, {
      usage: 'apply',
      summary: 'Make the namespace match the file: set what it names, remove what it named before',
      examples: ['limits apply -f limits.yaml', 'limits apply -f limits.yaml --yes'],
    }),
  ).action(onFile(context, applyLimits));
  addFile(
    addVerb(limits, {
      usage: 'diff',
      summary: 'Like plan, but exit with 2 if anything differs: for CI',
      examples: ['limits diff -f limits.yaml'],
    }),
  ).action(onFile(context, diffLimits));
  addVerb(limits, {
    usage: 'export',
    summary: 'Write all limits and entities of the namespace as a limits file',
    examples: ['limits export', 'limits export -o limits.yaml', 'limits export --namespace acme --json'],
  })
    .option('-o, --output <file>', 'write to this file instead of standard output')
    .action(onStore(context, exportLimits));
};

function addFile(command: Command): Command {
  return command.requiredOption('-f, --file <file>', 'the limits file: YAML or JSON; - reads standard input');
}

/** An action on a namespace with its limits file. */
type LimitsAction = (session: Session, file: ManifestFile) => Promise<Result<LimitsPlanShape>>;

/** Reads the file before the store is opened, because the file names the namespace. */
function onFile({ terminal }: CommandContext, action: LimitsAction) {
  return async (...called: unknown[]): Promise<void> => {
    const options = (called.at(-1) as Command).optsWithGlobals<GlobalOptions & { readonly file: string }>();
    const [{ readManifestFile }, { runOnStore }] = await Promise.all([
      import('../../limits/manifest-file.js'),
      import('../../run/run-on-store.js'),
    ]);
    const manifest = await readManifestFile(options.file, terminal.stdin);
    const namespace = manifest.namespaceFor(options.namespace);
    await runOnStore(terminal, { ...options, namespace }, async (session) => {
      try {
        return await action(session, manifest);
      } catch (error) {
        throw manifest.explain(error);
      }
    });
  };
}

const DIFFERS_EXIT = 2;

const planLimits: LimitsAction = async (session, file) => {
  const plan = await readPlan(session, file);
  return { data: shapeOf(plan), text: (style) => renderPlan(plan, style, 'plan') };
};

const diffLimits: LimitsAction = async (session, file) => {
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
  const reading = showReading(session);
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

const exportLimits: StoreAction<{ readonly output?: string }> = async (
  session,
  _,
  { output },
): Promise<Result<LimitsExportShape>> => {
  const { printManifest } = await import('../../limits/print-manifest.js');
  const reading = showReading(session);
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
  const reading = showReading(session);
  return session.limiter.manifest.plan(data).finally(() => reading.end());
}

const REDRAW_MS = 200;

/** Shows that the namespace is being read, until `end` is called. */
function showReading({ progress, namespace }: Session): { readonly end: () => void } {
  const timer = setInterval(() => progress(`reading namespace ${namespace}`), REDRAW_MS);
  return { end: () => clearInterval(timer) };
}

const NAMED = 3;

async function confirmDeletions({ confirm, namespace }: Session, { changes }: ManifestPlan): Promise<void> {
  const deleted = changes.filter(({ action }) => action === 'delete').map(({ target }) => describeTarget(target));
  if (deleted.length === 0) return;
  const more = deleted.length > NAMED ? ` and ${formatCount(deleted.length - NAMED)} more` : '';
  await confirm(`deletes ${deleted.slice(0, NAMED).join(', ')}${more} in namespace ${namespace}`);
}

/** Replaces the file by a rename: a concurrent reader sees the whole old or the whole new file. */
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

type Fields = Readonly<Record<string, unknown>>;

/** The changes, object by object: `plan` before they are made, `done` afterwards. */
function renderPlan(plan: ManifestPlan, style: Style, tense: 'plan' | 'done'): string {
  const { changes, drift } = plan;
  const lines = changes.flatMap((change) => renderChange(change, style));
  const manual = drift.flatMap(({ target, applied, live }) => [
    `  ${style.yellow(describeTarget(target))}${live === null ? ' was removed' : ''}`,
    ...(live === null ? [] : fieldLines(applied, live)),
  ]);
  const title = tense === 'plan' ? 'Manual changes since the last apply:' : 'Reverted manual changes:';
  return [lines, manual.length === 0 ? [] : [title, ...manual], [summaryOf(plan, tense)]]
    .filter((part) => part.length > 0)
    .map((part) => part.join('\n'))
    .join('\n\n');
}

const MARKS = { create: 'green', update: 'cyan', delete: 'red' } as const;

function renderChange({ action, target, before, after }: ManifestChange, style: Style): readonly string[] {
  const title = `${style[MARKS[action]](action)} ${describeTarget(target)}`;
  return [title, ...fieldLines(before, after)];
}

function fieldLines(before: Fields | null, after: Fields | null): readonly string[] {
  const names = new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})]);
  return [...names]
    .filter((name) => !sameField(name, before?.[name], after?.[name]))
    .map((name) => {
      const [old, next] = [before?.[name], after?.[name]];
      if (before === null) return `    ${name}: ${show(next)}`;
      return after === null ? `    ${name}: ${show(old)}` : `    ${name}: ${show(old)} -> ${show(next)}`;
    });
}

function show(value: unknown): string {
  if (value === undefined || value === null) return '(none)';
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return printable(value.join(', '));
  return printable(typeof value === 'string' ? value : JSON.stringify(value));
}

function summaryOf({ changes, drift, unchanged }: ManifestPlan, tense: 'plan' | 'done'): string {
  const count = (action: ManifestChange['action']): number =>
    changes.filter((change) => change.action === action).length;
  const verbs = { plan: ['to create', 'to update', 'to delete'], done: ['created', 'updated', 'deleted'] }[tense];
  const counts = (['create', 'update', 'delete'] as const).map(
    (action, at) => `${formatCount(count(action))} ${verbs[at]}`,
  );
  const manual = drift.length === 0 ? '' : `; ${formatCount(drift.length)} changed manually`;
  const rest = `${formatCount(unchanged)} unchanged${manual}`;
  return changes.length === 0 ? `No changes: ${rest}.` : `${counts.join(', ')}, ${rest}.`;
}
