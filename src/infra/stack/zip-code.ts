import { createHash } from 'node:crypto';
import { strToU8, zipSync } from 'fflate';
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
  const bytes = zipSync({ [CODE_ENTRY]: [strToU8(source), { level: 9, mtime }] });
  return { bytes, sha256: createHash('sha256').update(bytes).digest('base64') };
}
