import * as v from 'valibot';
import { ValidationError } from '../../core/errors.js';
import type { ManifestData } from '../../core/manifest/manifest.js';
import type { ManifestPlan } from '../../limiter/manifest/manifest-types.js';
import type { LimitsFileParser } from '../request/limits-file-parser.js';
import { operation } from '../operation.js';

const manifest = v.pipe(
  v.looseObject({ namespace: v.string() }),
  v.description('A limits file as JSON: namespace, system, resources, entities.'),
);

/** The library checks the document and names the field that is wrong. */
const file = v.pipe(
  v.looseObject({
    namespace: v.optional(v.string()),
    text: v.optional(v.pipe(v.string(), v.description('The file as text, instead of all other fields.'))),
  }),
  v.description('A limits file: its fields (namespace, system, resources, entities), or its text as YAML or JSON.'),
);

const fields = v.nullable(v.record(v.string(), v.unknown()));

const planView = v.object({
  changes: v.array(
    v.object({
      action: v.picklist(['create', 'update', 'delete']),
      target: v.looseObject({}),
      before: fields,
      after: fields,
    }),
  ),
  drift: v.array(v.object({ target: v.looseObject({}), applied: fields, live: fields })),
  unchanged: v.number(),
});

type PlanView = v.InferOutput<typeof planView>;

/** Calls `use` with the content of the file. An error about the content of a text gets its place in the text. */
async function withFile<T>(
  parseText: LimitsFileParser,
  body: v.InferOutput<typeof file>,
  use: (data: ManifestData) => Promise<T>,
): Promise<T> {
  const { text, ...content } = body;
  if (text === undefined) return use(content as unknown as ManifestData);
  if (Object.keys(content).length > 0) throw new ValidationError('body', 'either text or the fields of a file', body);
  const { data, explain } = await parseText(text);
  try {
    return await use(data as ManifestData);
  } catch (error) {
    throw explain(error);
  }
}

/** The plan has plain data only, so that its JSON is its view. */
function viewPlan(plan: ManifestPlan): PlanView {
  return JSON.parse(JSON.stringify(plan)) as PlanView;
}

export const limitsFileOperations = [
  operation({
    id: 'planLimits',
    group: 'limits file',
    method: 'post',
    path: '/v1/limits/plan',
    role: 'admin',
    summary:
      'The changes that applying a limits file would make, and the drift since it was applied last. Writes nothing.',
    body: file,
    answer: planView,
    async handle({ limiter, parseLimitsFile }, { body }) {
      return { body: viewPlan(await withFile(parseLimitsFile, body, (data) => limiter.manifest.plan(data))) };
    },
  }),
  operation({
    id: 'diffLimits',
    group: 'limits file',
    method: 'post',
    path: '/v1/limits/diff',
    role: 'admin',
    summary: 'Whether the store differs from a limits file, by a change to make or by drift: for CI. Writes nothing.',
    body: file,
    answer: v.object({ differs: v.boolean(), ...planView.entries }),
    async handle({ limiter, parseLimitsFile }, { body }) {
      const plan = viewPlan(await withFile(parseLimitsFile, body, (data) => limiter.manifest.plan(data)));
      return { body: { differs: plan.changes.length > 0 || plan.drift.length > 0, ...plan } };
    },
  }),
  operation({
    id: 'applyLimits',
    group: 'limits file',
    method: 'post',
    path: '/v1/limits/apply',
    role: 'admin',
    summary: 'Makes the changes of a limits file, each together with its audit record.',
    body: file,
    answer: planView,
    refusals: [409],
    async handle({ limiter, parseLimitsFile }, { body }) {
      return { body: viewPlan(await withFile(parseLimitsFile, body, (data) => limiter.manifest.apply(data))) };
    },
  }),
  operation({
    id: 'exportLimits',
    group: 'limits file',
    method: 'get',
    path: '/v1/limits/export',
    role: 'admin',
    summary: 'A limits file of the whole namespace.',
    answer: manifest,
    async handle({ limiter }) {
      return { body: { ...(await limiter.manifest.export()) } };
    },
  }),
] as const;
