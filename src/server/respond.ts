import type { Problem } from './problem.js';

const JSON_TYPE = 'application/json';
const PROBLEM_TYPE = 'application/problem+json';

/** An answer in JSON. From status 400 on it is a problem. */
export function respond(
  body: unknown,
  status: number = (body as Problem).status,
  headers: readonly (readonly [string, string])[] = [],
): Response {
  const isProblem = status >= 400;
  const lines = new Headers([
    ['content-type', isProblem ? PROBLEM_TYPE : JSON_TYPE],
    ['cache-control', 'no-store'],
    ['x-content-type-options', 'nosniff'],
  ]);
  if (status === 401) lines.set('www-authenticate', 'Bearer');
  for (const [name, value] of headers) lines.append(name, value);
  return new Response(JSON.stringify(body), { status, headers: lines });
}
