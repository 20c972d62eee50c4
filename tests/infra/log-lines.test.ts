import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { buildTemplate } from '../../src/infra/template.js';
import { archivedRecordOf } from '../../src/backends/dynamodb/stream/archive/archive.js';
import { handler as reconcilerHandler } from '../../src/backends/dynamodb/reconciler/lambda.js';
import { createStreamHandler } from '../../src/backends/dynamodb/stream/lambda.js';
import { type DynamoWorld, ENGINE, startWorld } from '../support/dynamodb/world.js';
import { resolveValue } from '../support/aws/resolve-template.js';

type Line = Readonly<Record<string, unknown>>;

const TEMPLATE = buildTemplate();
const GIVEN = {
  'AWS::Region': 'eu-west-1',
  'AWS::StackName': 'headgate',
  Table: 'headgate',
  StreamFunction: 'stream',
  ReconcilerFunction: 'reconciler',
  'StreamDeadLetters.QueueName': 'queue',
  StreamLog: '/headgate/headgate/stream',
  ReconcilerLog: '/headgate/headgate/reconciler',
};

interface Widget {
  readonly type: string;
  readonly x: number;
  readonly y: number;
  readonly properties: { readonly query?: string; readonly metrics?: readonly (readonly unknown[])[] };
}

const { widgets } = JSON.parse(
  resolveValue(TEMPLATE, TEMPLATE.Resources['Dashboard']?.Properties['DashboardBody'], GIVEN) as string,
) as { readonly widgets: readonly Widget[] };

/**
 * Whether a line matches a filter of CloudWatch Logs of the form that the template uses: `{ $.a = "x" && $.b > 0 }`.
 */
function matches(filter: string, line: Line): boolean {
  const terms = filter.slice(1, -1).split('&&');
  return terms.every((term) => {
    const [, field = '', operator, operand = ''] = /^ \$\.(\w+) ([=>]) (".*"|\d+) $/.exec(term) ?? [];
    if (operator === undefined) throw new TypeError(`${term} is not a supported term`);
    const wanted: unknown = JSON.parse(operand);
    return operator === '=' ? line[field] === wanted : Number(line[field]) > Number(wanted);
  });
}

function filterOf(name: string): string {
  return TEMPLATE.Resources[name]?.Properties['FilterPattern'] as string;
}

describe.skipIf(ENGINE.missing)(`log lines of the functions${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let streamLines: readonly Line[] = [];
  let reconcilerLines: readonly Line[] = [];

  beforeAll(async () => {
    world = await startWorld();
    const lines: string[] = [];
    const { endpoint, region } = world.engine;
    const handle = createStreamHandler({ table: world.table.name, endpoint, region, log: (line) => lines.push(line) });
    await handle({ Records: [{}] });
    streamLines = lines.map((line) => JSON.parse(line) as Line);
    vi.stubEnv('HEADGATE_TABLE', world.table.name);
    vi.stubEnv('AWS_ENDPOINT_URL_DYNAMODB', endpoint);
    vi.stubEnv('AWS_REGION', region);
    const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    await reconcilerHandler({});
    reconcilerLines = write.mock.calls.map(([line]) => JSON.parse(String(line)) as Line);
    write.mockRestore();
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await world?.[Symbol.asyncDispose]();
  });

  test('the metric counts a skipped change, and no other log line', () => {
    expect(streamLines.map((line) => matches(filterOf('SkippedFilter'), line))).toEqual([true, false]);
  });

  test('the metric counts a sweep with a bucket that could not be repaired, and no other sweep', () => {
    expect(reconcilerLines).toHaveLength(1);
    const [line] = reconcilerLines;
    expect(matches(filterOf('UnrepairedFilter'), line!)).toBe(false);
    expect(line).toHaveProperty('failed', 0);
    expect(matches(filterOf('UnrepairedFilter'), { ...line, failed: 2 })).toBe(true);
  });

  test('the page on monitoring has the fields of each line', () => {
    const page = readFileSync(new URL('../../docs/operate/monitor.md', import.meta.url), 'utf8');
    expect(streamLines).toHaveLength(2);
    for (const { message, ...fields } of streamLines) {
      const row = page.split('\n').find((line) => line.includes(`| \`${String(message)}\` |`)) ?? '';
      const documented = Array.from(row.split(' | ')[2]?.matchAll(/`(\w+)`/g) ?? [], ([, field = '']) => field);
      expect(documented.toSorted()).toEqual(
        Object.keys(fields)
          .filter((field) => field !== 'kind')
          .toSorted(),
      );
    }
  });

  test('the dashboard sums fields that exist', () => {
    const queries = widgets.flatMap(({ properties }) => properties.query ?? []);
    expect(queries).toHaveLength(2);
    for (const query of queries) {
      const [, message] = /filter message = '([^']+)'/.exec(query) ?? [];
      const line = [...streamLines, ...reconcilerLines].find((one) => one['message'] === message);
      const figures = Array.from(query.matchAll(/sum\((\w+)\)/g), ([, figure = '']) => figure);
      expect(figures.length).toBeGreaterThan(4);
      for (const figure of figures) expect(line?.[figure], figure).toBeTypeOf('number');
    }
  });
});

test("the dashboard's widgets do not overlap, and every metric names its dimensions in pairs", () => {
  expect(new Set(widgets.map(({ x, y }) => `${x} ${y}`)).size).toBe(widgets.length);
  const metrics = widgets.flatMap(({ properties }) => properties.metrics ?? []);
  expect(metrics.length).toBeGreaterThan(5);
  for (const metric of metrics) {
    const names = metric.filter((part) => typeof part === 'string');
    expect(names.length % 2).toBe(0);
    expect(names.join(' ')).not.toContain('$');
  }
});

test("the stream function may write to the archive's prefix and nowhere else", () => {
  const record = { id: '1', atMs: 0, principal: 'ann', action: 'config.set', subject: 'x', before: null, after: null };
  const change = { kind: 'audit', ns: 'ns', eventId: 'e', sequence: 's', event: 'REMOVE', expired: true } as const;
  const { key } = archivedRecordOf({ ...change, record: record as never })!;
  const role = JSON.stringify(TEMPLATE.Resources['StreamRole']?.Properties['Policies']);
  expect(role).toContain('"Action":["s3:PutObject"],"Resource":[{"Fn::Sub":"${ArchiveBucket.Arn}/audit/*"}]');
  expect(key).toMatch(/^audit\//);
});
