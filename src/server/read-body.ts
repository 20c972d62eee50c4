/** The body has more bytes than the route accepts. */
export class TooLarge extends Error {
  constructor(maxBytes: number) {
    super(`The body has more than ${maxBytes} bytes`);
  }
}

/** Reads a body as text. Stops at the first byte beyond `maxBytes`, so that a client cannot fill the memory. */
export async function readBody(request: Request, maxBytes: number): Promise<string> {
  const declared = Number(request.headers.get('content-length') ?? Number.NaN);
  if (declared > maxBytes) throw new TooLarge(maxBytes);
  // A declared length is enforced by the HTTP parser, so that the body need not be counted.
  if (declared <= maxBytes) return request.text();
  if (request.body === null) return '';
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of request.body as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new TooLarge(maxBytes);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
