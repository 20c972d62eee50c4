import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildTemplate } from '../../src/infra/template.js';

const PROGRAM = process.env['HEADGATE_CFN_LINT'] ?? 'cfn-lint';
const missing = spawnSync(PROGRAM, ['--version']).status !== 0;
const note = missing ? ' (skipped: no cfn-lint; pip install cfn-lint, or name it in HEADGATE_CFN_LINT)' : '';

interface Finding {
  readonly Filename: string;
  readonly Message: string;
}

describe.skipIf(missing)(`cfn-lint${note}`, () => {
  test('has nothing to say about the template, neither errors nor warnings nor advice, and would say it', () => {
    const template = buildTemplate();
    const { Table, ...others } = template.Resources;
    const wrong = { ...Table, Properties: { ...Table?.Properties, BilingMode: 'PAY_PER_REQUEST' } };
    const folder = mkdtempSync(join(tmpdir(), 'headgate-cfn-lint-'));
    try {
      const [good, bad] = ['good.json', 'bad.json'].map((name) => join(folder, name)) as [string, string];
      writeFileSync(good, JSON.stringify(template));
      writeFileSync(bad, JSON.stringify({ ...template, Resources: { ...others, Table: wrong } }));
      const args = ['--format', 'json', '--include-checks', 'I', '--', good, bad];
      const { stdout } = spawnSync(PROGRAM, args, { encoding: 'utf8' });
      const findings = JSON.parse(stdout) as readonly Finding[];
      expect(findings.filter(({ Filename }) => Filename === good)).toEqual([]);
      expect(findings.map(({ Message }) => Message).join()).toContain('BilingMode');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
