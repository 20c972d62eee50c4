import { toJsonSchema } from '@valibot/to-json-schema';
import type { GenericSchema } from 'valibot';
import type { Operation } from './operation.js';

/** The schema of an error body (RFC 9457). Members beyond these depend on `code`. */
const PROBLEM = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string', description: 'One sentence: what was expected and what came.' },
    code: { type: 'string', description: 'Stable, for programs: limit.exceeded, input.invalid, access.denied, ...' },
    retryAfterMs: {
      type: ['integer', 'null'],
      description: 'The exact wait of a denial; null: waiting does not help.',
    },
  },
} as const;

const REFUSALS: Readonly<Record<number, string>> = {
  400: 'The request is invalid; nothing was written.',
  401: 'The token is missing or unknown.',
  403: 'The token does not cover the operation, the namespace or the entity.',
  404: 'It does not exist.',
  409: 'It conflicts with the stored state, or no limits are configured.',
  413: 'The body is too large.',
  422: 'The ask is larger than the limit can ever hold.',
  429: 'A limit refused. Retry-After and the body tell the wait.',
  503: 'The store does not answer, or too many calls wait at the server.',
};

/** The refusals that every operation has. */
const COMMON_REFUSALS = [400, 401, 403, 404, 503];

/** The OpenAPI 3.1 document of a table of operations. */
export function buildOpenApi(operations: readonly Operation[], version: string) {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const one of operations) (paths[one.path] ??= {})[one.method] = describeOperation(one);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Headgate',
      version,
      description: 'Rate limits, token limits and concurrency slots that many processes share.',
    },
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { Problem: PROBLEM },
    },
  };
}

function describeOperation(one: Operation) {
  const refusals = [...COMMON_REFUSALS, ...(one.body === null ? [] : [413]), ...one.refusals];
  return {
    operationId: one.id,
    tags: [one.group],
    summary: one.summary,
    description: `Needs a token of the role ${one.role}${one.wholeStore ? ' for every namespace' : ''}.`,
    parameters: [NAMESPACE, ...parametersOf(one.params, 'path'), ...parametersOf(one.query, 'query')],
    ...(one.body === null
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: jsonSchema(one.body) } } } }),
    responses: {
      [one.status]: { description: 'Done.', content: { 'application/json': { schema: jsonSchema(one.answer) } } },
      ...Object.fromEntries(
        [...new Set(refusals)].toSorted((a, b) => a - b).map((status) => [status, refusal(status, one.denial)]),
      ),
    },
  };
}

const NAMESPACE = {
  name: 'headgate-namespace',
  in: 'header',
  required: false,
  description: 'The namespace. Default: the one of the token.',
  schema: { type: 'string' },
};

/** Only these statuses are always denials: a 403 may come from the token or from a pause. */
const DENIALS = [422, 429];

function refusal(status: number, denial: GenericSchema | null) {
  const isDenial = denial !== null && DENIALS.includes(status);
  const schema = isDenial ? jsonSchema(denial) : { $ref: '#/components/schemas/Problem' };
  return {
    description: REFUSALS[status] ?? 'An error.',
    content: { 'application/problem+json': { schema } },
  };
}

/** One parameter for each field of the schema. */
function parametersOf(schema: GenericSchema | null, place: 'path' | 'query') {
  if (schema === null) return [];
  const { properties = {}, required = [] } = jsonSchema(schema) as {
    readonly properties?: Readonly<Record<string, { readonly description?: string }>>;
    readonly required?: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...field }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: field,
  }));
}

function jsonSchema(schema: GenericSchema): object {
  const { $schema: _, ...rest } = toJsonSchema(schema, { target: 'draft-2020-12', errorMode: 'ignore' });
  return rest;
}
