import * as v from 'valibot';
import { EVERY_NAMESPACE } from '../access/access-token.js';
import { operation } from '../operation.js';

export const sessionOperations = [
  operation({
    id: 'session',
    group: 'service',
    method: 'get',
    path: '/v1/session',
    role: 'app',
    summary: 'What the token of the request may do.',
    answer: v.object({
      token: v.pipe(v.nullable(v.string()), v.description('The name of the token; null: the server has no tokens.')),
      role: v.picklist(['app', 'admin']),
      namespace: v.pipe(v.string(), v.description('The namespace of requests that name none.')),
      everyNamespace: v.boolean(),
      entityPrefix: v.pipe(v.nullable(v.string()), v.description('null: every entity.')),
    }),
    handle: async ({ token, namespace }) => ({
      body: {
        token: token?.name ?? null,
        role: token?.role ?? ('admin' as const),
        namespace,
        everyNamespace: token === null || token.namespace === EVERY_NAMESPACE,
        entityPrefix: token?.entityPrefix ?? null,
      },
    }),
  }),
] as const;
