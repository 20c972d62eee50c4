import { ValidationError } from '../../core/errors.js';

/** The body has more bytes than the route accepts. */
export class TooLarge extends Error {
  constructor(maxBytes: number) {
    super(`The body has more than ${maxBytes} bytes`);
  }
}

/** Far more than any operation needs, and far less than the stack of a function that calls itself for each level. */
const MAX_LEVELS = 100;

/** The value of a text in JSON. Throws an error that names `field` if it is none, or is deeper than a function can visit. */
export function parseJson(field: string, text: string, expected = 'JSON'): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ValidationError(field, expected, text);
  }
  // Each level has an opening and a closing bracket: a shorter text cannot be too deep.
  if (text.length > 2 * MAX_LEVELS && isDeeper(value, MAX_LEVELS)) {
    throw new ValidationError(field, `JSON of at most ${MAX_LEVELS} levels`, 'more');
  }
  return value;
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  return Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

/** Reads a body as text. Stops at the first byte beyond `maxBytes`, so that a client cannot fill the memory. */
export function readText(request: Request, maxBytes: number): Promise<string> {
  const declared = Number(request.headers.get('content-length') ?? Number.NaN);
  if (declared > maxBytes) throw new TooLarge(maxBytes);
  // A declared length is enforced by the HTTP parser, so that the body need not be counted.
  return (declared <= maxBytes ? request.text() : readCounted(request, maxBytes)).catch(explainEnd);
}

/** A client that disconnects while it sends is no failure of the server. A body that was read before is. */
function explainEnd(error: unknown): never {
  if (error instanceof TooLarge || error instanceof TypeError) throw error;
  throw new ValidationError('body', 'sent to its end', 'a part of it');
}

async function readCounted(request: Request, maxBytes: number): Promise<string> {
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
