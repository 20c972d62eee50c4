import { createHash } from 'node:crypto';
// fflate's build for Node uses worker threads, which need `require`. A bundled ES module has no `require`.
import { zipSync } from 'fflate/browser';
import { CODE_ENTRY } from '../template/names.js';

export interface CodeZip {
  readonly bytes: Uint8Array;
  /** In the format of Lambda's `CodeSha256`. */
  readonly sha256: string;
}

/**
 * Zips the code of a function. The same text gives the same bytes on every machine, so Lambda's hash shows whether the
 * function already has the code.
 */
export function zipCode(source: string): CodeZip {
  // A zip stores local time without a zone. A local date gives the same bytes in every zone; an instant would not.
  const mtime = new Date(1980, 0, 1);
  const bytes = zipSync({ [CODE_ENTRY]: [new TextEncoder().encode(source), { level: 9, mtime }] });
  return { bytes, sha256: createHash('sha256').update(bytes).digest('base64') };
}
