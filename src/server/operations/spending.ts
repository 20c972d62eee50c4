import * as v from 'valibot';
import type { ChargeRequest } from '../../limiter/charge/charge.js';
import { operation } from '../operation.js';
import { amounts, entityId, instant, present, resource } from '../request/schemas.js';
import { pauseView, viewPausedBy } from '../answer/views.js';

const charge = v.strictObject({
  entityId,
  resource,
  amounts,
  id: v.optional(v.pipe(v.string(), v.description('Makes a repeated request count once within 24 hours.'))),
});

const done = v.object({ done: v.literal(true) });
const DONE = { body: { done: true as const } };

export const spendingOperations = [
  operation({
    id: 'charge',
    group: 'charge',
    method: 'post',
    path: '/v1/charge',
    role: 'app',
    summary: 'Takes amounts without a lease. Never refuses: what is not there becomes debt.',
    body: charge,
    answer: done,
    refusals: [409],
    entitiesOf: ({ body }) => [body.entityId],
    async handle({ limiter }, { body }) {
      await limiter.charge(present(body) as ChargeRequest);
      return DONE;
    },
  }),
  operation({
    id: 'credit',
    group: 'charge',
    method: 'post',
    path: '/v1/credit',
    role: 'admin',
    summary: 'Gives amounts back, never above the capacity.',
    body: charge,
    answer: done,
    refusals: [409],
    entitiesOf: ({ body }) => [body.entityId],
    async handle({ limiter }, { body }) {
      await limiter.credit(present(body) as ChargeRequest);
      return DONE;
    },
  }),
  operation({
    id: 'pause',
    group: 'pause',
    method: 'post',
    path: '/v1/pause',
    role: 'admin',
    summary: 'Stops an entity on every resource, or its bucket of one resource. Without an end: until it is resumed.',
    body: v.strictObject({
      entityId,
      resource: v.optional(resource),
      until: v.optional(instant),
      forMs: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(1))),
      reason: v.pipe(v.string(), v.description('The text that denied callers get.')),
    }),
    answer: pauseView,
    entitiesOf: ({ body }) => [body.entityId],
    async handle({ limiter }, { body: { until, forMs, ...target } }) {
      const end =
        until === undefined
          ? { forMs: forMs ?? ('forever' as const) }
          : { untilMs: Date.parse(until), ...(forMs === undefined ? {} : { forMs }) };
      return { body: viewPausedBy(await limiter.pause({ ...present(target), ...end })) };
    },
  }),
  operation({
    id: 'resume',
    group: 'pause',
    method: 'post',
    path: '/v1/resume',
    role: 'admin',
    summary: 'Ends the pause of an entity, or of its bucket of one resource.',
    body: v.strictObject({ entityId, resource: v.optional(resource) }),
    answer: v.object({ resumed: v.pipe(v.boolean(), v.description('false: it was not paused.')) }),
    entitiesOf: ({ body }) => [body.entityId],
    async handle({ limiter }, { body }) {
      return { body: { resumed: await limiter.resume(present(body)) } };
    },
  }),
] as const;
