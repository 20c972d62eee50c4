import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, test } from 'vitest';
import { file } from '../../src/backends/embedded/file/file.js';
import { describeBackend } from '../../src/testing/backend.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-'));
const path = join(folder, 'conformance.db');

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One file for all cases, with a separate connection for each case. */
describeBackend('file', { describe, test, create: () => file({ path }) });
