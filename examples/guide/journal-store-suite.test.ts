// #region suite
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeBackend } from 'headgate/testing/backend';
import { afterAll, describe, test } from 'vitest';
import { journal } from './journal-store.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-journal-'));
afterAll(() => rmSync(folder, { recursive: true }));

describeBackend('journal', {
  describe,
  test,
  create: () => journal(join(folder, randomUUID())),
  dispose: (store) => store.close(),
  skip: [],
});
// #endregion suite
