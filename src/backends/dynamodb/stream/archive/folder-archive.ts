import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, resolve, sep } from 'node:path';
import { ValidationError } from '../../../../core/errors.js';
import type { Archive } from './archive.js';

/** An archive in a folder, which is made if it is missing. A file is there whole or not at all. */
export function folderArchive(path: string): Archive {
  const root = resolve(path);
  return {
    async put(key, bytes) {
      const place = resolve(root, key);
      if (!place.startsWith(root + sep)) throw new ValidationError('key', 'a path inside of the archive', key);
      await mkdir(dirname(place), { recursive: true });
      const draft = `${place}.${randomUUID()}.part`;
      try {
        const file = await open(draft, 'wx');
        try {
          await file.writeFile(bytes);
          // The record is gone from the table: a loss of power must not lose it here.
          await file.sync();
        } finally {
          await file.close();
        }
        await rename(draft, place);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
  };
}
