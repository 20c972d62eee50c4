import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { tableDefinition } from '../../src/backends/dynamodb/table-definition.js';
import { buildImportTemplate } from '../../src/infra/stack/import-template.js';
import { tableFactsOf } from '../../src/infra/stack/table-facts.js';
import { buildTemplate } from '../../src/infra/template.js';
import { settleTemplate } from '../support/settle-template.js';

const PROGRAM = process.env['HEADGATE_CFN_LINT'] ?? 'cfn-lint';
const missing = spawnSync(PROGRAM, ['--version']).status !== 0;
const note = missing ? ' (skipped: no cfn-lint; pip install cfn-lint, or name it in HEADGATE_CFN_LINT)' : '';

interface Finding {
  readonly Filename: string;
  readonly Message: string;
  readonly Rule: { readonly Id: string };
}

describe.skipIf(missing)(`cfn-lint${note}`, () => {
  const findingsIn = (templates: Readonly<Record<string, object>>): readonly Finding[] => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-cfn-lint-'));
    try {
      const paths = Object.entries(templates).map(([name, template]) => {
        writeFileSync(join(folder, `${name}.json`), JSON.stringify(template));
        return join(folder, `${name}.json`);
      });
      const args = ['--format', 'json', '--include-checks', 'I', '--', ...paths];
      const found = JSON.parse(spawnSync(PROGRAM, args, { encoding: 'utf8' }).stdout) as readonly Finding[];
      return found.map((one) => ({ ...one, Filename: basename(one.Filename, '.json') }));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };

  test('has nothing to say about the template by which an import adopts a table', () => {
    const { BillingMode: _, ...definition } = tableDefinition('limits');
    const settings = { ttlAttribute: 'ttl', pointInTimeRecovery: false };
    const keyed = { Status: 'ENABLED', KMSMasterKeyArn: 'arn:aws:kms:eu-west-1:1:key/1' } as const;
    const plain = buildImportTemplate(tableFactsOf(definition, settings)).template;
    const withKey = { ...definition, SSEDescription: keyed };
    const encrypted = buildImportTemplate(tableFactsOf(withKey, settings)).template;
    expect(findingsIn({ plain, encrypted })).toEqual([]);
  });

  test('has nothing to say about the template, neither errors nor warnings nor advice, and would say it', () => {
    const template = buildTemplate();
    const { Table, ...others } = template.Resources;
    const wrong = { ...Table, Properties: { ...Table?.Properties, BilingMode: 'PAY_PER_REQUEST' } };
    const findings = findingsIn({
      good: template,
      keyed: settleTemplate(template, { KmsKeyArn: 'arn:aws:kms:eu-west-1:123456789012:key/1f0e' }),
      bad: { ...template, Resources: { ...others, Table: wrong } },
    });
    // Once conditions are decided, parameters that only they use are left over (W2001).
    const own = findings.filter(({ Filename, Rule: { Id } }) => Filename !== 'bad' && Id !== 'W2001');
    expect(own).toEqual([]);
    expect(findings.filter(({ Filename }) => Filename === 'good')).toEqual([]);
    expect(findings.map(({ Message }) => Message).join()).toContain('BilingMode');
  });
});
