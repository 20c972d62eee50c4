import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { InfrastructureError } from '../../core/errors.js';
import { FUNCTIONS } from '../template/names.js';
import { type CodeZip, zipCode } from './zip-code.js';

/** A function of the stack, and the code that this package has for it. */
export interface Bundle {
  /** Its logical id. */
  readonly logicalId: string;
  readonly file: string;
  readonly code: CodeZip;
}

const FILES = [
  { logicalId: FUNCTIONS.stream, file: 'stream.cjs' },
  { logicalId: FUNCTIONS.reconciler, file: 'reconciler.cjs' },
] as const;

/** The code of the functions, as it was built into this package. */
export function readBundles(folder: string = join(packageFolder(), 'dist', 'lambda')): readonly Bundle[] {
  return FILES.map(({ logicalId, file }) => {
    const path = join(folder, file);
    if (!existsSync(path)) {
      throw new InfrastructureError('infrastructure.code-missing', `This package lacks ${path}: install it again`);
    }
    return { logicalId, file, code: zipCode(readFileSync(path, 'utf8')) };
  });
}

/** The nearest folder above that has a package: this file is in a chunk, whose depth the bundler chooses. */
function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder)) folder = dirname(folder);
  return folder;
}
