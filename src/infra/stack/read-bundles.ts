import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { InfrastructureError } from '../../core/errors.js';
import { FUNCTIONS } from '../template/names.js';
import { type CodeZip, zipCode } from './zip-code.js';

/** A function of the stack, and this package's code for it. */
export interface Bundle {
  /** The logical id of the function. */
  readonly logicalId: string;
  readonly file: string;
  readonly code: CodeZip;
}

const FILES = [
  { logicalId: FUNCTIONS.stream, file: 'stream.cjs' },
  { logicalId: FUNCTIONS.reconciler, file: 'reconciler.cjs' },
] as const;

/** Reads the code of the functions from this package's build. */
export function readBundles(folder: string = join(packageFolder(), 'dist', 'lambda')): readonly Bundle[] {
  return FILES.map(({ logicalId, file }) => {
    const path = join(folder, file);
    if (!existsSync(path)) {
      throw new InfrastructureError('infrastructure.code-missing', `This package lacks ${path}: install it again`);
    }
    return { logicalId, file, code: zipCode(readFileSync(path, 'utf8')) };
  });
}

/** The nearest parent folder with a package.json. The bundler puts this file into a chunk at any depth. */
function packageFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json')) && folder !== dirname(folder)) folder = dirname(folder);
  return folder;
}
