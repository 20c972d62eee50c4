import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { buildTemplate } from '../../src/infra/template.js';
import { settleTemplate } from '../support/aws/settle-template.js';

const PROGRAM = process.env['HEADGATE_CHECKOV'] ?? 'checkov';
const missing = spawnSync(PROGRAM, ['--version']).status !== 0;
const note = missing ? ' (skipped: no checkov; pip install checkov, or name it in HEADGATE_CHECKOV)' : '';

/**
 * Accepted findings. docs/operate/security.md has the reasons. With a KMS key of the user, those of the second list
 * disappear.
 */
const ALLOWED = [
  'CKV_AWS_18 ArchiveBucket',
  'CKV_AWS_115 ReconcilerFunction',
  'CKV_AWS_116 ReconcilerFunction',
  'CKV_AWS_116 StreamFunction',
  'CKV_AWS_117 ReconcilerFunction',
  'CKV_AWS_117 StreamFunction',
];
const WITHOUT_KEY = [
  'CKV_AWS_27 StreamDeadLetters',
  'CKV_AWS_115 StreamFunction',
  'CKV_AWS_119 Table',
  'CKV_AWS_158 ReconcilerLog',
  'CKV_AWS_158 StreamLog',
  'CKV_AWS_173 ReconcilerFunction',
  'CKV_AWS_173 StreamFunction',
];

const KEYED = { KmsKeyArn: 'arn:aws:kms:eu-west-1:123456789012:key/1f0e', StreamReservedConcurrency: '5' };
const { ArchiveBucket, ...OTHERS } = buildTemplate().Resources;
const { VersioningConfiguration: _, ...UNVERSIONED } = ArchiveBucket?.Properties ?? {};

const TEMPLATES = {
  printed: buildTemplate(),
  defaults: settleTemplate(buildTemplate()),
  keyed: settleTemplate(buildTemplate(), KEYED),
  unversioned: { ...buildTemplate(), Resources: { ...OTHERS, Bucket: { ...ArchiveBucket, Properties: UNVERSIONED } } },
} as const;
type Name = keyof typeof TEMPLATES;

interface Check {
  readonly check_id: string;
  readonly resource: string;
  readonly file_path: string;
}

interface Report {
  readonly results: { readonly passed_checks: readonly Check[]; readonly failed_checks: readonly Check[] };
  readonly summary: { readonly parsing_errors: number };
}

describe.skipIf(missing)(`checkov${note}`, () => {
  let report: Report;

  beforeAll(() => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-checkov-'));
    try {
      const files = Object.entries(TEMPLATES).flatMap(([name, template]) => {
        writeFileSync(join(folder, `${name}.json`), JSON.stringify(template));
        return ['-f', join(folder, `${name}.json`)];
      });
      const args = [...files, '--framework', 'cloudformation', '--compact', '--skip-download', '-o', 'json'];
      report = JSON.parse(spawnSync(PROGRAM, args, { encoding: 'utf8', maxBuffer: 1e9 }).stdout) as Report;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }, 120_000);

  const of = (name: Name, checks: readonly Check[]): readonly string[] =>
    checks
      .filter(({ file_path }) => file_path.endsWith(`/${name}.json`))
      .map(({ check_id, resource }) => `${check_id} ${resource.replace(/^.*\./, '')}`);
  const findingsIn = (name: Name): readonly string[] => of(name, report.results.failed_checks).toSorted();

  test('checkov reads every template, including those with conditions', () => {
    expect(report.summary.parsing_errors).toBe(0);
    for (const name of Object.keys(TEMPLATES) as Name[]) {
      expect(of(name, report.results.passed_checks).length, name).toBeGreaterThan(60);
    }
  });

  test('checkov finds in the printed template only the listed findings', () => {
    expect(findingsIn('printed').filter((finding) => ![...ALLOWED, ...WITHOUT_KEY].includes(finding))).toEqual([]);
  });

  test('checkov finds in the template with default parameters exactly the listed findings', () => {
    expect(findingsIn('defaults')).toEqual([...ALLOWED, ...WITHOUT_KEY].toSorted());
  });

  test('checkov finds less with a KMS key and reserved concurrency', () => {
    expect(findingsIn('keyed')).toEqual(ALLOWED.toSorted());
  });

  test('checkov would find an archive without versions', () => {
    expect(findingsIn('unversioned')).toContain('CKV_AWS_21 Bucket');
  });
});

test('the page on security has a reason for every accepted finding of checkov', () => {
  const page = readFileSync(new URL('../../docs/operate/security.md', import.meta.url), 'utf8');
  const named = new Set(Array.from(page.matchAll(/^\| `(CKV_AWS_\d+)` \|/gm), ([, id = '']) => id));
  expect([...named].toSorted()).toEqual(
    [...new Set([...ALLOWED, ...WITHOUT_KEY].map((finding) => finding.split(' ')[0] ?? ''))].toSorted(),
  );
});
