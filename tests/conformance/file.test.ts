import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { file } from '../../src/backends/embedded/file/file.js';
import { describeBackend } from '../../src/testing/backend.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-'));
let files = 0;

afterAll(() => rmSync(folder, { recursive: true, force: true }));

describeBackend('file', {
  describe,
  test,
  create: () => file({ path: join(folder, `${files++}.db`) }),
});
