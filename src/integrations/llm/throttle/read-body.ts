/** A member of a value that may be anything. */
export function at(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}

/** Google answers a call that streams, but not as server-sent events, with a list. */
export function objectIn(body: unknown): unknown {
  return Array.isArray(body) ? (body as readonly unknown[])[0] : body;
}

export function parseJson(text: string | null): unknown {
  try {
    return JSON.parse(text ?? 'null') as unknown;
  } catch {
    return null;
  }
}
