import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { buildTemplate } from '../../src/infra/template.js';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const PAGE = read('docs/operate/deploy.md');

/** The names in the second cell of a row of the page. */
function actionsOf(service: string): readonly string[] {
  const row = PAGE.split('\n').find((line) => line.startsWith(`| ${service} |`)) ?? '';
  return (row.split('|')[2] ?? '').split(',').map((name) => name.trim());
}

test.each([
  ['CloudFormation', 'src/infra/stack/aws/sdk-cloudformation.ts'],
  ['Lambda', 'src/infra/stack/aws/sdk-functions.ts'],
])('the page on deployment names the actions of %s that are sent, and no others', (service, file) => {
  const sent = Array.from(read(file).matchAll(/new sdk\.(\w+)Command\(/g), ([, name = '']) => name);
  expect(actionsOf(service)).toEqual([...new Set(sent)].toSorted());
});

test('the page on deployment names every parameter of the template except the name of the table', () => {
  const table = PAGE.slice(PAGE.indexOf('## Parameters'), PAGE.indexOf('## By hand'));
  const rows = table.split('\n').filter((line) => line.startsWith('| `'));
  const named = rows.flatMap((row) => Array.from((row.split('|')[1] ?? '').matchAll(/`(\w+)`/g), ([, name]) => name));
  const expected = Object.keys(buildTemplate().Parameters).filter((name) => name !== 'TableName');
  expect(new Set(named)).toEqual(new Set(expected));
});
