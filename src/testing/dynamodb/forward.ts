import { type Agent, type IncomingMessage, request } from 'node:http';

/** An answer of the engine, unchanged. */
export interface RawAnswer {
  readonly status: number;
  /** Names and values alternate. */
  readonly headers: readonly string[];
  readonly body: Buffer;
}

/** Hop-by-hop headers, and headers about the length of a body that the proxy may change. */
const NOT_FORWARDED = ['connection', 'keep-alive', 'transfer-encoding', 'content-length'];

export function forwardable(rawHeaders: readonly string[], without: readonly string[] = []): string[] {
  const kept: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    const lower = name.toLowerCase();
    if (!NOT_FORWARDED.includes(lower) && !without.includes(lower)) kept.push(name, value);
  }
  return kept;
}

/** Sends a request to the engine over a connection that is reused. */
export function forward(
  engine: { readonly endpoint: URL; readonly agent: Agent },
  { method, url, rawHeaders }: Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'>,
  body: Buffer,
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    request({
      hostname: engine.endpoint.hostname,
      port: engine.endpoint.port,
      agent: engine.agent,
      method,
      path: url,
      // Keeps the client's Host header, because the signature covers it.
      headers: [...forwardable(rawHeaders), 'Content-Length', String(body.length)],
    })
      .on('response', (response) => {
        readAll(response).then(
          (text) => resolve({ status: response.statusCode ?? 502, headers: response.rawHeaders, body: text }),
          reject,
        );
      })
      .on('error', reject)
      .end(body);
  });
}

export async function readAll(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
}
