import { randomUUID } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, resolve, sep } from 'node:path';
import { ValidationError } from '../../../../core/errors.js';
import type { Archive } from './archive.js';

/** An archive in a folder, which is created if missing. A file is written completely or not at all. */
export function folderArchive(path: string): Archive {
  const root = resolve(path);
  return {
    async put(key, bytes) {
      const file = resolve(root, key);
      if (!file.startsWith(root + sep)) throw new ValidationError('key', 'a path inside of the archive', key);
      await mkdir(dirname(file), { recursive: true });
      const draft = `${file}.${randomUUID()}.part`;
      try {
        const handle = await open(draft, 'wx');
        try {
          await handle.writeFile(bytes);
          // The record is already deleted from the table: a power failure must not lose it here.
          await handle.sync();
        } finally {
          await handle.close();
        }
        await rename(draft, file);
      } catch (error) {
        await rm(draft, { force: true });
        throw error;
      }
    },
  };
}
