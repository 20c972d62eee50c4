import * as v from 'valibot';
import type { ManifestData } from '../../core/manifest/manifest.js';
import type { ManifestPlan } from '../../limiter/manifest/manifest-types.js';
import { operation } from '../operation.js';

/** The library checks the document and names the field that is wrong. */
const manifest = v.pipe(
  v.looseObject({ namespace: v.string() }),
  v.description('A limits file as JSON: namespace, system, resources, entities.'),
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
    body: manifest,
    answer: planView,
    async handle({ limiter }, { body }) {
      return { body: viewPlan(await limiter.manifest.plan(body as unknown as ManifestData)) };
    },
  }),
  operation({
    id: 'applyLimits',
    group: 'limits file',
    method: 'post',
    path: '/v1/limits/apply',
    role: 'admin',
    summary: 'Makes the changes of a limits file, each together with its audit record.',
    body: manifest,
    answer: planView,
    refusals: [409],
    async handle({ limiter }, { body }) {
      return { body: viewPlan(await limiter.manifest.apply(body as unknown as ManifestData)) };
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
