import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLI_SHAPES, ON_DYNAMODB } from '../support/cli/cli-shapes.js';
import { STACK_SHAPES } from '../support/cli/cli-stack-shapes.js';
import { type CliStore, createCliStore } from '../support/cli/cli-store.js';
import { runCli } from '../support/cli/run-cli.js';

const LIMITS_FILE = fileURLToPath(new URL('../support/cli/limits.yaml', import.meta.url));

interface Case {
  readonly command: string;
  readonly args: readonly string[];
  /** A pattern of the printed text on the store with data, and optionally a part of the JSON. */
  readonly text: RegExp;
  readonly json?: object;
  /** The exit code on an empty store, 0 unless given. */
  readonly whenEmpty?: number;
  readonly exitCode?: number;
}

const CASES: readonly Case[] = [
  {
    command: 'acquire',
    args: ['user-1', 'gpt-4', '-c', 'rpm=1'],
    text: /^granted: user-1 on gpt-4\n/,
    json: { granted: true },
    whenEmpty: 4,
  },
  {
    command: 'acquire',
    args: ['user-1', 'gpt-4', '-c', 'rpm=9'],
    text: /^denied: .* refused by rpm of user-1; retry in /,
    json: { granted: false, reason: 'exhausted' },
    whenEmpty: 4,
    exitCode: 10,
  },
  {
    command: 'acquire',
    args: ['user-1', 'gpt-4', '-c', 'rpm=11'],
    text: /waiting does not help/,
    json: { granted: false, reason: 'impossible', retryAfterMs: null },
    whenEmpty: 4,
    exitCode: 11,
  },
  {
    command: 'acquire',
    args: ['user-1', 'gpt-4', '-c', 'rpm=1', '-l', 'rpm:5/day'],
    text: /limits from the -l of this call/,
    json: { granted: true },
  },
  {
    command: 'audit list',
    args: [],
    text: /alice +config\.set +\$RESOURCE:gpt-4 +limits rpm:60\/day slots:4\/concurrent/,
  },
  { command: 'audit list', args: ['user-1'], text: /entity\.create +user-1 +parentId proj-1; cascade true/ },
  { command: 'audit list', args: ['--last', '1'], text: /^AT .*\n.* user-1 +resource gpt-4; limits rpm:10\/day/ },
  { command: 'audit list', args: ['--system'], text: /\$SYSTEM/ },
  { command: 'audit list', args: ['--resource', 'gpt-4'], text: /\$RESOURCE:gpt-4/ },
  { command: 'audit list', args: ['--namespace-registry', 'old'], text: /namespace\.register[^]*namespace\.delete/ },
  { command: 'bucket list', args: ['--entity', 'user-1'], text: /user-1 +gpt-4 +rpm:10\/day +8 +2 +1\n/ },
  {
    command: 'bucket list',
    args: ['--resource', 'gpt-4'],
    text: /proj-1 +gpt-4 +rpm:60\/day +58 +2 /,
    json: { next: null },
  },
  {
    command: 'bucket reset',
    args: ['user-1', 'gpt-4', '--yes'],
    text: /^reset: all limits of user-1 on gpt-4 are full\n/,
  },
  {
    command: 'bucket show',
    args: ['user-1', 'gpt-4'],
    text: /leases +1 held, 0 expired so far\n\nLIMIT +LEFT +CONSUMED\nrpm:10\/day +8 +2\n/,
  },
  {
    command: 'charge',
    args: ['user-1', 'gpt-4', '-c', 'rpm=20'],
    text: /^charged: user-1 on gpt-4: rpm 20; available now: rpm -12, tpm 700, slots 1\n$/,
    json: { amounts: { rpm: 20 }, id: null },
    whenEmpty: 4,
  },
  {
    command: 'credit',
    args: ['user-1', 'gpt-4', '-c', 'rpm=20', '--id', 'a'],
    text: /^credited: user-1 on gpt-4: rpm 20; available now: rpm 10, tpm 700, slots 1\n$/,
    json: { amounts: { rpm: 20 }, id: 'a' },
    whenEmpty: 4,
  },
  { command: 'capacity', args: ['gpt-4'], text: /rpm +2 +70 +66 +94 %/ },
  {
    command: 'check',
    args: [],
    text: /^ok\nstore +file:.*\nnamespace +default \(id .{11}\)\n/,
    json: { ok: true, namespace: 'default' },
  },
  { command: 'completion', args: ['bash'], text: /complete -o default -F _headgate headgate/ },
  { command: 'completion', args: ['zsh'], text: /^#compdef headgate\n/ },
  { command: 'completion', args: ['fish'], text: /complete -c headgate -f\n/ },
  { command: 'config list', args: [], text: /system +rpm:100\/min {2}\(while the store is out: local\)/ },
  {
    command: 'config show',
    args: ['user-1', 'gpt-4'],
    text: /^ +LEVEL +LIMITS\n> {2}entity user-1 on gpt-4 +rpm:10\/day/,
    json: { effective: null },
  },
  {
    command: 'config show',
    args: ['--effective', 'user-1', 'gpt-4'],
    text: /proj-1 +rpm:60\/day {2}slots:4\/concurrent +resource gpt-4\n/,
    json: { onUnavailable: 'local' },
  },
  { command: 'entity children', args: ['proj-1'], text: /^ENTITY .*\nuser-1 / },
  {
    command: 'entity create',
    args: ['user-3', '--name', 'Carol', '--metadata', '{"a":1}'],
    text: /^created\nentity +user-3\nname +Carol\n/,
    json: { name: 'Carol', metadata: { a: 1 } },
  },
  { command: 'entity delete', args: ['user-1', '--yes'], text: /^deleted: the record of user-1/, whenEmpty: 4 },
  {
    command: 'entity delete',
    args: ['user-1', '--resource', 'gpt-4', '--yes'],
    text: /^deleted: the limits of user-1 on gpt-4\n/,
  },
  {
    command: 'entity delete',
    args: ['user-2', '--default-limits', '--yes'],
    text: /^deleted: the limits of user-2 for every resource\n/,
  },
  { command: 'entity list', args: [], text: /user-2 +\\u001b\[2Jsly /, json: { next: null } },
  {
    command: 'entity list',
    args: ['--limit', '2'],
    text: /There are more: use --all, or --after user-1\n$/,
    json: { next: 'user-1' },
  },
  {
    command: 'entity list',
    args: ['--all', '--after', 'proj-1'],
    text: /^ENTITY .*\nuser-1 .*\nuser-2 .*\n$/,
    json: { next: null },
  },
  {
    command: 'entity set',
    args: ['user-1', '--name', 'Alice', '--no-parent', '-l', 'rpm:5/min'],
    text: /^set\nentity +user-1\nname +Alice\nparent +-\n[^]*limits +rpm:5\/min\n/,
    json: { defaultLimits: ['rpm:5/min'] },
    whenEmpty: 4,
  },
  {
    command: 'entity set',
    args: ['user-9', '--resource', 'gpt-4', '-l', 'rpm:5/min'],
    text: /no record: it has limits only[^]*on gpt-4 +rpm:5\/min\n/,
    json: { entity: null },
  },
  {
    command: 'entity show',
    args: ['user-1', '--resource', 'gpt-4'],
    text: /parent +proj-1 \(spends from it, too\)\n[^]*on gpt-4 +rpm:10\/day/,
    whenEmpty: 4,
  },
  { command: 'entity show', args: ['user-1', '--all-resources'], text: /on gpt-4 +rpm:10\/day/, whenEmpty: 4 },
  { command: 'leases list', args: ['user-1', 'gpt-4'], text: /slots=1 +worker-7 .* in (?:1 h|5\d min(?: \d+ s)?)\n/ },
  { command: 'leases list', args: ['--entity', 'user-1'], text: /^LEASE +ENTITY +RESOURCE .*\n\S+ +user-1 +gpt-4 / },
  { command: 'leases list', args: [], text: /user-1 +gpt-4 +slots=1/ },
  { command: 'leases list', args: ['user-2'], text: /^No leases of user-2\.\n$/ },
  {
    command: 'leases release',
    args: ['0Abcdefgh12', '--entity', 'user-1', '--yes'],
    text: /^No lease 0Abcdefgh12 of user-1\.\n$/,
  },
  {
    command: 'limits apply',
    args: ['-f', LIMITS_FILE],
    text: /^create entity team-1\n[^]*\n2 created, 1 updated, 0 deleted, 1 unchanged\.\n$/,
    json: { drift: [], unchanged: 1 },
  },
  {
    command: 'limits diff',
    args: ['-f', LIMITS_FILE],
    text: /\n2 to create, 1 to update, 0 to delete, 1 unchanged\.\n$/,
    json: { drift: [], unchanged: 1 },
    exitCode: 2,
    whenEmpty: 2,
  },
  {
    command: 'limits export',
    args: [],
    text: /^namespace: default\nsystem:\n {2}onUnavailable: local\n {2}limits: \["rpm:100\/min"\]\n/,
    json: { namespace: 'default', entities: { 'proj-1': { name: 'Production' } } },
  },
  {
    command: 'limits plan',
    args: ['-f', LIMITS_FILE],
    text: /\nupdate system limits\n {4}limits: rpm:100\/min -> rpm:200\/min\n/,
    json: { drift: [], unchanged: 1 },
  },
  { command: 'namespace create', args: ['beta'], text: /^created\nnamespace +beta\n/, json: { created: true } },
  {
    command: 'namespace delete',
    args: ['acme', '--yes'],
    text: /^deleted; `headgate namespace recover acme` recovers it\n/,
    json: { status: 'deleted' },
    whenEmpty: 4,
  },
  { command: 'namespace list', args: [], text: /acme .*active[^]*default .*active/ },
  { command: 'namespace orphans', args: [], text: /old .*deleted/ },
  { command: 'namespace purge', args: ['old', '--yes'], text: /^purged: \d+ records\n/, whenEmpty: 4 },
  {
    command: 'namespace recover',
    args: ['old'],
    text: /^recovered\nnamespace +old\n/,
    json: { status: 'active' },
    whenEmpty: 4,
  },
  { command: 'namespace show', args: ['acme'], text: /^namespace +acme\n/, whenEmpty: 4 },
  {
    command: 'pause',
    args: ['user-1', '--resource', 'gpt-4', '--for', '20s', '--reason', 'vendor'],
    text: /^paused: user-1 on gpt-4, until .*Z: vendor\n/,
    json: { entityId: 'user-1', resource: 'gpt-4', reason: 'vendor' },
  },
  {
    command: 'pause',
    args: ['user-1', '--forever', '--reason', 'leaked'],
    text: /^paused: user-1, until it is resumed: leaked\n/,
    json: { resource: null, until: null },
  },
  { command: 'resume', args: ['user-1'], text: /^user-1 was not paused\.\n/, json: { resumed: false } },
  {
    command: 'reconcile',
    args: [],
    text: /^Nothing to do: a store in memory or in a file reclaims expired leases by itself\.\n$/,
    json: { reclaimed: 0, failed: 0, complete: true },
  },
  { command: 'resource delete', args: ['gpt-4', '--yes'], text: /^deleted: the limits of resource gpt-4\n/ },
  { command: 'resource entities', args: ['gpt-4'], text: /^user-1\n$/, json: { next: null } },
  { command: 'resource list', args: [], text: /^RESOURCE +LIMITS\ngpt-4 +rpm:60\/day {2}slots:4\/concurrent\n$/ },
  {
    command: 'resource set',
    args: ['gpt-5', '-l', 'rpm:3/min', '-l', 'tpm:90/90s:100@5'],
    text: /^set\nresource +gpt-5\nlimits +rpm:3\/min {2}tpm:90\/90sec:100@5\n/,
  },
  {
    command: 'resource set',
    args: ['gpt-4', '-l', 'rpm:90/day'],
    text: /^set\nresource +gpt-4\nlimits +rpm:90\/day(?: {2}slots:4\/concurrent)?\n/,
  },
  {
    command: 'resource set',
    args: ['gpt-4', '-l', 'rpm:90/day', '--replace', '--yes'],
    text: /^set\nresource +gpt-4\nlimits +rpm:90\/day\n/,
  },
  { command: 'resource show', args: ['gpt-4'], text: /limits +rpm:60\/day {2}slots:4\/concurrent\n/ },
  { command: 'system delete', args: ['--yes'], text: /^deleted: the limits of the system\n/ },
  {
    command: 'system set',
    args: ['-l', 'rpm:7/min', '--on-unavailable', 'allow'],
    text: /^set\nlimits +rpm:7\/min\nwhile the store is out +allow\n/,
    json: { limits: ['rpm:7/min'], onUnavailable: 'allow' },
  },
  { command: 'system show', args: [], text: /limits +rpm:100\/min\nwhile the store is out +local\n/ },
  { command: 'template', args: [], text: /^AWSTemplateFormatVersion: "2010-09-09"\nDescription: / },
  { command: 'template', args: ['--format', 'json'], text: /^\{\n "AWSTemplateFormatVersion": / },
  { command: 'usage list', args: ['gpt-4', '--window', 'daily', '--entity', 'user-1'], text: /user-1 +2 +300 +2 +0\n/ },
  {
    command: 'usage plot',
    args: ['gpt-4', '--entity', 'user-1', '--only', 'tpm'],
    text: /^tpm of gpt-4, user-1, hourly \(UTC\)\n[^]*█{40} 300\n/,
  },
  {
    command: 'usage plot',
    args: ['gpt-4', '--window', 'monthly', '--table'],
    text: /^WINDOW \(UTC\) +rpm +tpm +acquires\n/,
  },
  {
    command: 'usage summary',
    args: ['gpt-4', '--from', '2hour'],
    text: /tpm +300 +300\n/,
    json: { entityId: null, resource: 'gpt-4' },
  },
  { command: 'version', args: [], text: /^headgate \d+\.\d+\.\d+ \(Node \d+/ },
];

let store: CliStore;

beforeAll(async () => {
  store = await createCliStore();
});
afterAll(() => store.remove());

const title = ({ command, args }: Case): string => `${command} ${args.join(' ')}`;
const NAMED = CASES.map((one) => [title(one), one] as const);
/** The exit code of a plot without data. */
const PLOT_OF_NOTHING = 3;
/** The exit codes of a command that answered: `limits diff` also exits with 2. */
const ANSWERS = [0, 2];

describe('commands on a file with data', () => {
  test.concurrent.each(NAMED)('%s prints text for people', async (_, { command, args, text, exitCode = 0 }) => {
    const run = await runCli([...command.split(' '), ...args, '--store', store.copy()]);
    expect(run.stdout).toMatch(text);
    expect(run).toMatchObject({ exitCode, stderr: '' });
    // oxlint-disable-next-line no-control-regex -- colours, and what a name could smuggle in
    expect(run.stdout).not.toMatch(/\u001B/);
  });

  test.concurrent.each(NAMED)('%s prints its documented JSON', async (_, { command, args, json, exitCode = 0 }) => {
    const run = await runCli(['--store', store.copy(), '--json', ...command.split(' '), ...args]);
    expect(run).toMatchObject({ exitCode, stderr: '' });
    const data: unknown = JSON.parse(run.stdout);
    expect(CLI_SHAPES[command]?.(data, command)).toEqual([]);
    expect(data).toMatchObject(json ?? {});
  });
});

describe('commands on an empty store in memory', () => {
  test.concurrent.each(NAMED)('%s succeeds on an empty store in memory, or is refused in one line', async (_, one) => {
    const { command, args, whenEmpty = 0 } = one;
    const expected = args.includes('--only') ? PLOT_OF_NOTHING : whenEmpty;
    const [told, data] = await Promise.all([
      runCli([...command.split(' '), ...args, '--store', 'memory:']),
      runCli([...command.split(' '), ...args, '--store', 'memory:', '--json']),
    ]);
    expect([told.exitCode, data.exitCode]).toEqual([expected, expected]);
    if (ANSWERS.includes(expected)) {
      expect(told).toMatchObject({ stderr: '', stdout: expect.stringMatching(/\S/) });
      expect(CLI_SHAPES[command]?.(JSON.parse(data.stdout), command)).toEqual([]);
    } else {
      expect(told).toMatchObject({ stdout: '', stderr: expect.stringMatching(/^headgate: .*\n$/) });
      expect(data.stdout).toBe('');
    }
  });
});

/** Run by serve.test.ts. */
const SERVING = ['serve', 'token create', 'token list', 'token revoke'];

test('every command with a documented shape is run here, on a DynamoDB table, on a stack, or in the test of the tour', () => {
  const run = [
    ...CASES.map(({ command }) => command),
    ...ON_DYNAMODB,
    ...SERVING,
    ...Object.keys(STACK_SHAPES),
    'tour',
  ];
  expect([...new Set(run)].toSorted()).toEqual(Object.keys(CLI_SHAPES).toSorted());
});
