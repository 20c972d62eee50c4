import { BINARY_FIELDS } from './prompt-size.js';

/**
 * Tokens that mark the beginning and the end of a prompt, and of the answer. Those of messages are shorter than the
 * JSON of a message.
 */
export const FRAME_TOKENS = 16;

/** Deeper values are not counted, so that no request can exhaust the stack. */
const MAX_DEPTH = 64;

const DATA_URL = /^data:[\w.+/-]+;base64,/;
/** As long as only binary data is. */
const BASE64 = /^[\w+/=-]{256}/;

/**
 * At least the tokens of the text that a request contains, for every tokenizer: a token has at least one byte of UTF-8.
 * Images and files that are written as text are left out, because their tokens do not depend on their length.
 */
export function boundOfInput(request: unknown): number {
  return FRAME_TOKENS + bytesOf(request, '', 0);
}

/** The bytes of the JSON text of a value. `name`: the field that contains it. */
function bytesOf(value: unknown, name: string, depth: number): number {
  if (typeof value === 'string') return isBinary(value, name) ? 0 : Buffer.byteLength(value) + 3;
  if (typeof value !== 'object' || value === null) return String(value).length + 1;
  if (depth > MAX_DEPTH || ArrayBuffer.isView(value)) return 0;
  let bytes = 3;
  if (Array.isArray(value)) {
    for (const item of value) bytes += bytesOf(item, name, depth + 1);
    return bytes;
  }
  for (const [key, field] of Object.entries(value))
    bytes += Buffer.byteLength(key) + 3 + bytesOf(field, key, depth + 1);
  return bytes;
}

function isBinary(text: string, name: string): boolean {
  return DATA_URL.test(text) || (BINARY_FIELDS.has(name) && BASE64.test(text));
}
