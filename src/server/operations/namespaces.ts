import * as v from 'valibot';
import { NamespaceNotFound } from '../../core/errors.js';
import type { Namespace } from '../../limiter/api/namespaces-api.js';
import { operation } from '../operation.js';
import { namespaceName, page, pageOf, pageOptions } from '../request/schemas.js';

const namespaceView = v.object({
  id: v.string(),
  name: v.string(),
  status: v.picklist(['active', 'deleted', 'purging']),
  createdAt: v.string(),
});

function viewNamespace({ id, name, status, createdAt }: Namespace) {
  return { id, name, status, createdAt: createdAt.toISOString() };
}

const nameParam = v.object({ name: namespaceName });

export const namespaceOperations = [
  operation({
    id: 'registerNamespace',
    group: 'namespaces',
    method: 'post',
    path: '/v1/namespaces',
    role: 'admin',
    wholeStore: true,
    summary: 'Creates a namespace, or answers the active one with that name.',
    body: v.strictObject({ name: namespaceName }),
    answer: namespaceView,
    async handle({ limiter }, { body }) {
      return { body: viewNamespace(await limiter.namespaces.register(body.name)) };
    },
  }),
  operation({
    id: 'listNamespaces',
    group: 'namespaces',
    method: 'get',
    path: '/v1/namespaces',
    role: 'admin',
    wholeStore: true,
    summary: 'The active namespaces.',
    query: v.object(page),
    answer: pageOf(namespaceView),
    async handle({ limiter }, { query }) {
      const { items, next } = await limiter.namespaces.list(pageOptions(query));
      return { body: { items: items.map(viewNamespace), next } };
    },
  }),
  operation({
    id: 'getNamespace',
    group: 'namespaces',
    method: 'get',
    path: '/v1/namespaces/{name}',
    role: 'admin',
    wholeStore: true,
    summary: 'One active namespace.',
    params: nameParam,
    answer: namespaceView,
    refusals: [404],
    async handle({ limiter }, { params }) {
      const namespace = await limiter.namespaces.get(params.name);
      if (namespace === null) throw new NamespaceNotFound(params.name);
      return { body: viewNamespace(namespace) };
    },
  }),
  operation({
    id: 'deleteNamespace',
    group: 'namespaces',
    method: 'delete',
    path: '/v1/namespaces/{name}',
    role: 'admin',
    wholeStore: true,
    summary: 'Makes a namespace unusable. Its data stays until it is purged with the CLI.',
    params: nameParam,
    answer: namespaceView,
    refusals: [404],
    async handle({ limiter }, { params }) {
      return { body: viewNamespace(await limiter.namespaces.delete(params.name)) };
    },
  }),
  operation({
    id: 'recoverNamespace',
    group: 'namespaces',
    method: 'post',
    path: '/v1/namespaces/{name}/recover',
    role: 'admin',
    wholeStore: true,
    summary: 'Restores a deleted namespace with all its data, by its name or its id.',
    params: nameParam,
    answer: namespaceView,
    refusals: [404, 409],
    async handle({ limiter }, { params }) {
      return { body: viewNamespace(await limiter.namespaces.recover(params.name)) };
    },
  }),
] as const;
