import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { tableDefinition } from '../../src/backends/dynamodb/table/table-definition.js';
import { buildImportTemplate, tableFactsOf } from '../../src/infra/stack/table/table-facts.js';
import { buildTemplate } from '../../src/infra/template.js';
import { settleTemplate } from '../support/aws/settle-template.js';

const PROGRAM = process.env['HEADGATE_CFN_LINT'] ?? 'cfn-lint';
const missing = spawnSync(PROGRAM, ['--version']).status !== 0;
const note = missing ? ' (skipped: no cfn-lint; pip install cfn-lint, or name it in HEADGATE_CFN_LINT)' : '';

interface Finding {
  readonly Filename: string;
  readonly Message: string;
  readonly Rule: { readonly Id: string };
}

const TEMPLATE = buildTemplate();
const { Table, ...OTHERS } = TEMPLATE.Resources;
const MISSPELT = { ...Table, Properties: { ...Table?.Properties, BilingMode: 'PAY_PER_REQUEST' } };
const KEY = 'arn:aws:kms:eu-west-1:123456789012:key/1f0e';

/** The import templates of an adoption: for a table without a KMS key, and with one. */
function importTemplate(encryption: object): object {
  const { BillingMode: _, ...definition } = tableDefinition('limits');
  const settings = { ttlAttribute: 'ttl', pointInTimeRecovery: false };
  return buildImportTemplate(tableFactsOf({ ...definition, ...encryption }, settings)).template;
}

const TEMPLATES = {
  printed: TEMPLATE,
  keyed: settleTemplate(TEMPLATE, { KmsKeyArn: KEY }),
  import: importTemplate({}),
  importKeyed: importTemplate({ SSEDescription: { Status: 'ENABLED', KMSMasterKeyArn: KEY } }),
  misspelt: { ...TEMPLATE, Resources: { ...OTHERS, Table: MISSPELT } },
} as const;

describe.skipIf(missing)(`cfn-lint${note}`, () => {
  let findings: readonly Finding[];

  beforeAll(() => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-cfn-lint-'));
    try {
      const paths = Object.entries(TEMPLATES).map(([name, template]) => {
        writeFileSync(join(folder, `${name}.json`), JSON.stringify(template));
        return join(folder, `${name}.json`);
      });
      const args = ['--format', 'json', '--include-checks', 'I', '--', ...paths];
      findings = JSON.parse(spawnSync(PROGRAM, args, { encoding: 'utf8' }).stdout) as readonly Finding[];
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 180_000);

  const findingsIn = (name: keyof typeof TEMPLATES): readonly string[] =>
    findings
      .filter(({ Filename }) => basename(Filename) === `${name}.json`)
      .map(({ Rule, Message }) => `${Rule.Id} ${Message}`);

  test('cfn-lint finds no errors, warnings or advice in the template', () => {
    expect(findingsIn('printed')).toEqual([]);
  });

  test('cfn-lint finds nothing in the template with a KMS key, except parameters that only conditions use', () => {
    expect(findingsIn('keyed').filter((finding) => !finding.startsWith('W2001 '))).toEqual([]);
  });

  test.each(['import', 'importKeyed'] as const)('cfn-lint finds nothing in the template of an adoption: %s', (name) => {
    expect(findingsIn(name)).toEqual([]);
  });

  test('cfn-lint would find a misspelt property', () => {
    expect(findingsIn('misspelt').join()).toContain('BilingMode');
  });
});
