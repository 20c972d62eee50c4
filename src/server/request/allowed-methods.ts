import type { Hono } from 'hono';

/** The methods of the routes that have this path, for `Allow`; empty if there is no such route. */
export function allowedMethods({ routes }: Hono, path: string): readonly string[] {
  const found = routes.filter((route) => patternOf(route.path).test(path)).map(({ method }) => method);
  // Hono answers HEAD by the route of GET.
  return [...new Set(found.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))].toSorted();
}

function patternOf(path: string): RegExp {
  const literal = path.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(`^${literal.replaceAll(/:\w+/g, '[^/]+')}$`);
}
