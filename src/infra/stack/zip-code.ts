import { createHash } from 'node:crypto';
// Node's own build brings worker threads, which need a `require` that no bundle has.
import { zipSync } from 'fflate/browser';
import { CODE_ENTRY } from '../template/names.js';

export interface CodeZip {
  readonly bytes: Uint8Array;
  /** As Lambda spells it: `CodeSha256`. */
  readonly sha256: string;
}

/** The code of a function. The same text gives the same bytes everywhere, so that Lambda's hash tells whether it is there. */
export function zipCode(source: string): CodeZip {
  // A zip holds local time without a zone: this is the same for everybody, an instant is not.
  const mtime = new Date(1980, 0, 1);
  const bytes = zipSync({ [CODE_ENTRY]: [new TextEncoder().encode(source), { level: 9, mtime }] });
  return { bytes, sha256: createHash('sha256').update(bytes).digest('base64') };
}
