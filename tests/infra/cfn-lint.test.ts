import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildTemplate } from '../../src/infra/template.js';

const PROGRAM = process.env['HEADGATE_CFN_LINT'] ?? 'cfn-lint';
const missing = spawnSync(PROGRAM, ['--version']).status !== 0;
const note = missing ? ' (skipped: no cfn-lint; pip install cfn-lint, or name it in HEADGATE_CFN_LINT)' : '';

describe.skipIf(missing)(`cfn-lint${note}`, () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'headgate-cfn-lint-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** With its warnings and its advice. */
  const lint = (template: unknown): string => {
    const file = join(folder, 'template.json');
    writeFileSync(file, JSON.stringify(template));
    const { stdout, stderr, error } = spawnSync(PROGRAM, ['--include-checks', 'I', '--', file], { encoding: 'utf8' });
    if (error !== undefined) throw error;
    return `${stdout}${stderr}`;
  };

  test('has nothing to say about the template', () => {
    expect(lint(buildTemplate())).toBe('');
  });

  test('would say it', () => {
    const { Table, ...others } = buildTemplate().Resources;
    const wrong = { ...Table, Properties: { ...Table?.Properties, BillingMode: 'PAY_PER_REQEST' } };
    expect(lint({ ...buildTemplate(), Resources: { ...others, Table: wrong } })).toMatch(/PAY_PER_REQEST/);
  });
});
