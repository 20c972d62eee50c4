import { buildOpenApi } from '../../src/server/openapi.js';
import { OPERATIONS } from '../../src/server/operations/index.js';
import { type Field, fieldsOf, type Schema, typeText } from './json-schema.js';
import { type Page, pageOf, table } from './page.js';

interface Content {
  readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
}

/** An operation of the document, as far as the page shows it. */
interface Described {
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}

interface Route {
  readonly title: string;
  readonly operation: Described;
}

/** `http.md`: the OpenAPI document of the server, as a page. */
export function buildHttpPage(): Page {
  const { paths } = buildOpenApi(OPERATIONS, '') as unknown as { paths: Record<string, Record<string, Described>> };
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]): Route => ({
      title: `${method.toUpperCase()} ${path}`,
      operation,
    })),
  );
  const groups = [...new Set(routes.map(({ operation }) => groupOf(operation)))];
  const summary = routes.map(({ title, operation }) => [`[\`${title}\`](#${anchorOf(title)})`, operation.summary]);
  return pageOf('http.md', [
    '# The HTTP API',
    'The routes of [`headgate serve`](../guide/serve.md). A running server has the complete OpenAPI 3.1 document, with the schemas of all answers, at `/openapi.json`, and shows it at `/docs`.',
    'Send `authorization: Bearer hg_...` if the server has tokens, and the header `headgate-namespace` for another namespace than that of the token. A refusal is `application/problem+json` (RFC 9457) with `code`, one of [these](errors.md); a denial also has `retryAfterMs` and the header `retry-after`.',
    table(['operation', 'does'], summary),
    ...groups.flatMap((group) => [
      `## ${group[0]?.toUpperCase()}${group.slice(1)}`,
      ...routes.filter(({ operation }) => groupOf(operation) === group).flatMap(describe),
    ]),
  ]);
}

function groupOf({ tags: [group = 'others'] }: Described): string {
  return group;
}

/** The anchor of a heading on GitHub. */
function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

function describe({ title, operation }: Route): readonly string[] {
  const { summary, description, parameters, requestBody, responses } = operation;
  const given = parameters
    .filter(({ in: place }) => place !== 'header')
    .map(({ name, in: place, required, description: meaning = '', schema }) =>
      rowOf({ name, type: `${typeText(schema)} (${place})`, isRequired: required, meaning }),
    );
  const body = requestBody === undefined ? [] : fieldsOf(schemaOf(requestBody)).map(rowOf);
  const [status = '200', answer] = Object.entries(responses).find(([code]) => code.startsWith('2')) ?? [];
  const refusals = Object.keys(responses).filter((code) => !code.startsWith('2'));
  return [
    `### ${title}`,
    `${summary} ${description}`,
    ...section('Parameters:', given),
    ...section('Body:', body),
    ...describeAnswer(status, answer),
    `Refusals: ${refusals.join(', ')}.`,
  ];
}

function describeAnswer(status: string, answer: Content | undefined): readonly string[] {
  if (answer === undefined) return [];
  const schema = schemaOf(answer);
  const fields = fieldsOf(schema, 1).map(rowOf);
  return fields.length === 0 ? [`Answer ${status}: \`${typeText(schema)}\`.`] : section(`Answer ${status}:`, fields);
}

function section(title: string, rows: readonly (readonly string[])[]): readonly string[] {
  return rows.length === 0 ? [] : [title, table(['field', 'type', 'meaning'], rows)];
}

function rowOf({ name, type, isRequired, meaning }: Field): readonly string[] {
  return [`\`${name}${isRequired ? '' : '?'}\``, `\`${type}\``, meaning];
}

function schemaOf({ content }: Content): Schema {
  return Object.values(content)[0]?.schema ?? {};
}
