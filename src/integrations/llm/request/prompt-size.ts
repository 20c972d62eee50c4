import type { PromptSize } from './llm-call.js';

/** Fields whose text is binary, encrypted or an address: it is not read as text by a model. */
export const BINARY_FIELDS: ReadonlySet<string> = new Set([
  'audio',
  'blob',
  'bytes',
  'data',
  'encrypted_content',
  'fileData',
  'file_data',
  'file_id',
  'id',
  'image',
  'image_url',
  'inlineData',
  'inline_data',
  'input_audio',
  'signature',
  'thoughtSignature',
  'url',
]);

/** Deeper values are not counted, so that no request can exhaust the stack. */
const MAX_DEPTH = 64;

/**
 * The size of the parts of a request that a model reads: all text and the names of fields, as of tool schemas. Numbers in
 * a list are token ids, as embeddings accept them.
 */
export function sizeOfPrompt(parts: readonly unknown[]): PromptSize {
  const size = { characters: 0, tokens: 0, texts: [] as string[] };
  for (const part of parts) add(size, part, 0);
  return size;
}

function add(size: { characters: number; tokens: number; texts: string[] }, value: unknown, depth: number): void {
  if (typeof value === 'string') {
    if (value.startsWith('data:')) return;
    size.characters += value.length;
    size.texts.push(value);
    return;
  }
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH || ArrayBuffer.isView(value)) return;
  if (Array.isArray(value)) {
    for (const item of value) {
      if (typeof item === 'number') size.tokens += 1;
      else add(size, item, depth + 1);
    }
    return;
  }
  for (const [name, field] of Object.entries(value)) {
    if (BINARY_FIELDS.has(name)) continue;
    size.characters += name.length;
    add(size, field, depth + 1);
  }
}
