import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { buildTemplate } from '../../src/infra/template.js';
import { POLICIES } from '../../src/infra/template/names.js';

type Fields = Readonly<Record<string, unknown>>;

interface Statement {
  readonly Action: readonly string[];
  readonly Resource: readonly unknown[];
  readonly Condition?: object;
}

const TEMPLATE = buildTemplate();
const IAM = pageOf('iam');
const MONITOR = pageOf('monitor');

function pageOf(name: string): string {
  return readFileSync(new URL(`../../docs/operate/${name}.md`, import.meta.url), 'utf8');
}

/** The cells of every row that starts with a name in backquotes, by that name. */
function rowsOf(page: string, heading: string): ReadonlyMap<string, readonly string[]> {
  const table = page.slice(page.indexOf(`\n| ${heading} |`)).split('\n\n')[0] ?? '';
  const rows = table
    .split('\n')
    .flatMap((line) => (line.startsWith('| `') ? [line.split('|').map((cell) => cell.trim())] : []));
  return new Map(rows.map(([, first = '', ...cells]) => [first.slice(1, -1), cells.slice(0, -1)]));
}

/** The records that a condition allows, by a part of their key. */
const KINDS = [
  ['BUCKET#', 'of buckets '],
  ['RECEIPT#', 'of receipts '],
  ['"_/SYSTEM#"', 'of the registry '],
] as const;

/** The actions on one kind of resource in the format of the page: `GetItem; of buckets PutItem`. */
function actionsText(statements: readonly Statement[], resource: RegExp): string {
  const parts = new Map<string, string[]>();
  for (const { Action, Resource, Condition } of statements) {
    if (!resource.test(JSON.stringify(Resource[0]))) continue;
    const keys = JSON.stringify(Condition ?? {});
    const [, of] = KINDS.find(([key]) => keys.includes(key)) ?? ['', ''];
    const actions = Action.map((action) => action.replace(/^dynamodb:/, ''));
    parts.set(of, [...(parts.get(of) ?? []), ...actions].toSorted());
  }
  const order = ['', ...KINDS.map(([, of]) => of)];
  return order.flatMap((of) => (parts.has(of) ? [`${of}${parts.get(of)?.join(', ')}`] : [])).join('; ');
}

const ON_TABLE = /\["Table","Arn"\]/;
const ON_INDEX = /\/index\//;
const ON_STREAM = /\["Table","StreamArn"\]/;

describe('the page on permissions', () => {
  test('the page on permissions has the actions of every policy', () => {
    const rows = rowsOf(IAM, 'policy');
    expect([...rows.keys()].toSorted()).toEqual(Object.values(POLICIES).toSorted());
    for (const [name, [, ...cells]] of rows) {
      const document = TEMPLATE.Resources[name]?.Properties['PolicyDocument'] as unknown as { Statement: Statement[] };
      const expected = [ON_TABLE, ON_INDEX, ON_STREAM].map((resource) => actionsText(document.Statement, resource));
      expect(cells, name).toEqual(expected);
    }
  });

  test('the page on permissions has the actions of the functions on the table', () => {
    const rows = rowsOf(IAM, 'role');
    expect([...rows.keys()].toSorted()).toEqual(['ReconcilerRole', 'StreamRole']);
    for (const [name, [onTable = '', onIndex = '']] of rows) {
      const [policy] = TEMPLATE.Resources[name]!.Properties['Policies'] as unknown as Fields[];
      const { Statement } = policy!['PolicyDocument'] as { readonly Statement: readonly Statement[] };
      expect([onTable, onIndex.replace(' of GSI1', '')]).toEqual(
        [ON_TABLE, ON_INDEX].map((resource) => actionsText(Statement, resource)),
      );
    }
  });
});

const OPERATORS: Readonly<Record<string, string>> = {
  GreaterThanThreshold: '>',
  GreaterThanOrEqualToThreshold: '>=',
  LessThanThreshold: '<',
};

/** The name of the metric and its period; also for a sum of metrics. */
function metricOf({ MetricName, Period, Metrics }: Fields): readonly [name: string, periodSec: unknown] {
  if (MetricName === undefined) {
    const [, part] = Metrics as readonly { readonly MetricStat: { Metric: { MetricName: string }; Period: number } }[];
    return [part!.MetricStat.Metric.MetricName, part!.MetricStat.Period];
  }
  if (typeof MetricName === 'string') return [MetricName, Period];
  return [(MetricName as { readonly 'Fn::Sub': string })['Fn::Sub'].replace('${AWS::StackName}-', ''), Period];
}

describe('the page on monitoring', () => {
  const alarms = Object.entries(TEMPLATE.Resources).filter(([, { Type }]) => Type === 'AWS::CloudWatch::Alarm');

  test('the page on monitoring has for every alarm when it fires, what missing data means, and what to do', () => {
    expect(alarms.length).toBeGreaterThan(5);
    const rows = rowsOf(MONITOR, 'alarm');
    for (const [name, { Properties }] of alarms) {
      const [metric, periodSec] = metricOf(Properties);
      const times = `${Number(Properties['DatapointsToAlarm'])} of ${Number(Properties['EvaluationPeriods'])} times`;
      const period = periodSec === 300 ? '5 min' : '1 h';
      const bound = `${OPERATORS[Properties['ComparisonOperator'] as string]} ${Number(Properties['Threshold'])}`;
      const silence = Properties['TreatMissingData'] === 'breaching' ? 'an alarm' : 'well';
      expect(rows.get(name)?.slice(0, 2)).toEqual([`${metric} ${bound}, ${times} in ${period}`, silence]);
    }
    const advice = rowsOf(MONITOR.slice(MONITOR.indexOf('What to do:')), 'alarm');
    for (const table of [rows, advice]) expect([...table.keys()]).toEqual(alarms.map(([name]) => name));
  });

  test('the page on monitoring has every chart of the dashboard', () => {
    const body = TEMPLATE.Resources['Dashboard']?.Properties['DashboardBody'] as { readonly 'Fn::Sub': string };
    const { widgets } = JSON.parse(body['Fn::Sub']) as {
      readonly widgets: readonly { properties: { title: string } }[];
    };
    const section = MONITOR.slice(MONITOR.indexOf('\n## Dashboard'), MONITOR.indexOf('\n## Logs'));
    const charts = section.split('\n').filter((line) => /^\| (?!chart|-)/.test(line) && !line.startsWith('|---'));
    expect(charts.map((line) => line.slice(2).split(' | ')[0])).toEqual(
      widgets.map(({ properties }) => properties.title),
    );
  });

  test('the page on monitoring names only parameters that exist', () => {
    const named = [
      ...`${IAM}${MONITOR}`.matchAll(
        /`((?:Stream|Reconciler|Log|Create|Role|Permissions|Alarm|Namespace)\w+)(?:=\w+)?`/g,
      ),
    ];
    const known = [
      ...Object.keys(TEMPLATE.Parameters),
      ...Object.keys(TEMPLATE.Resources),
      ...Object.keys(TEMPLATE.Outputs),
    ];
    expect(named.length).toBeGreaterThan(15);
    for (const [, name = ''] of named) expect(known).toContain(name);
  });
});
