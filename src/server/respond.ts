import type { Problem } from './problem.js';

const DATA = {
  'content-type': 'application/json',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
} as const;
const PROBLEM = { ...DATA, 'content-type': 'application/problem+json' } as const;

/**
 * An answer in JSON. From status 400 on it is a problem. The headers are a plain object, not `Headers`: the server of Node
 * then sends them as they are, which takes a third of the time.
 */
export function respond(
  body: unknown,
  status: number = (body as Problem).status,
  lines: readonly (readonly [string, string])[] = [],
): Response {
  const headers: Record<string, string> = { ...(status >= 400 ? PROBLEM : DATA) };
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  for (const [name, value] of lines) headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  return new Response(JSON.stringify(body), { status, headers });
}
