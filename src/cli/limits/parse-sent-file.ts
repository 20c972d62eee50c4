import { ValidationError } from '../../core/errors.js';
import type { ParsedLimitsFile } from '../../server/request/limits-file-parser.js';

/** The server answers nothing else while it parses YAML: about half a second for this size. */
const MAX_YAML_BYTES = 256 * 1024;

/** Reads the limits files that are sent to the server as `headgate limits` does. The parser is loaded with the first file. */
export async function parseSentFile(text: string): Promise<ParsedLimitsFile> {
  const size = Buffer.byteLength(text);
  if (size > MAX_YAML_BYTES) {
    const expected = `at most ${MAX_YAML_BYTES} bytes: send the fields of a larger file as JSON, or use headgate limits`;
    throw new ValidationError('body.text', expected, `${size} bytes`);
  }
  const { parseManifestFile } = await import('./manifest-file.js');
  return parseManifestFile(new TextEncoder().encode(text), 'limits file');
}
