import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startProvider } from '../../src/testing/provider/index.js';
import { readSession } from '../support/cli/page-session.js';
import { blockQuoting, FirstInstall } from '../support/docs/first-project.js';

/**
 * Nine things that a new user tries, in an empty project with the packed tarball. Each test saves the program that a page
 * prints, as it is printed, and starts it. The titles say what each of them shows.
 */
let install: FirstInstall;

beforeAll(() => {
  install = new FirstInstall();
  for (const name of ['libsql', 'vitest', 'openai', 'express']) install.link(name);
}, 120_000);
afterAll(() => install[Symbol.dispose]());

/** What a page shows below `$ node <name>`. */
function shownBy(page: string, name: string): string {
  const step = readSession(page).find(({ line }) => line === `node ${name}`);
  if (step === undefined) throw new Error(`${page} does not start ${name}`);
  return `${step.output.trimEnd()}\n`;
}

const GUIDE = 'docs/guide/';

/** What the reader adds to the snippets on streams: it reads one, and prints what it cost. */
const READ_STREAM = `
for await (const piece of answer('ada', 'Why is the sky blue?')) process.stdout.write(piece);
await limited.settled();
const { limits } = await limiter.buckets.get({ entityId: 'ada', resource: 'gpt-4o-mini' });
console.log('\\n' + limits.find(({ limit }) => limit.name === 'tpm').consumed);
await limiter.close();
`;

/** What the reader adds to the app of express. */
const LISTEN = `const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));`;

describe.skipIf(process.platform === 'win32')('a new user (skipped on Windows: signals, and npx in a shell)', () => {
  test('two limits with settle: the real total counts, and a denial names the wait, or that none helps', async () => {
    const project = install.open('settle');
    project.saveProgram('answer.mjs', `${GUIDE}getting-started.md`, ['examples/guide/getting-started.ts#all']);
    const env = { HEADGATE_URL: 'file:./limits.db' };
    expect(await project.node(['answer.mjs'])).toBe(shownBy(`${GUIDE}getting-started.md`, 'answer.mjs'));
    const used = JSON.parse(await project.headgate(['usage', 'summary', 'gpt-4', '--json'], env)) as unknown;
    expect(used).toMatchObject({ total: { rpm: 1, tpm: 700 }, acquires: 1 });

    const set = async (tpm: string): Promise<string> =>
      project.headgate(['resource', 'set', 'gpt-4', '-l', 'rpm:60/min', '-l', tpm], env);
    await set('tpm:600/day');
    await project.node(['answer.mjs']);
    expect(await project.node(['answer.mjs'])).toMatch(/^Please try again in \d+ ms\.\n$/);
    await set('tpm:400/day');
    expect(await project.node(['answer.mjs'])).toBe('No wait helps: ask for less.\n');
  });

  test('waiting with a timeout and a signal: a grant after the wait, a denial at once, an abort', async () => {
    const project = install.open('waiting');
    project.saveProgram('waiting.mjs', `${GUIDE}waiting.md`, ['examples/guide/waiting.ts#wait']);
    expect(await project.node(['waiting.mjs'])).toBe(shownBy(`${GUIDE}waiting.md`, 'waiting.mjs'));
  });

  test('slots that survive kill -9: a fifth process gets one when the leases of four killed processes expire', async () => {
    const project = install.open('slots');
    project.saveProgram('render.mjs', `${GUIDE}slots.md`, ['examples/guide/slots.ts#slots']);
    const holders = Array.from({ length: 4 }, () => project.start('render.mjs'));
    const killAll = async () => Promise.all(holders.map((holder) => holder.kill('SIGKILL')));
    try {
      await Promise.all(holders.map((holder) => holder.untilLine(/^has a slot$/)));
      await using fifth = project.start('render.mjs');
      const listed = await project.headgate(['leases', 'list', 'gpu-1', '--store', 'file:./limits.db', '--json']);
      expect((JSON.parse(listed) as { items: readonly unknown[] }).items).toHaveLength(4);
      expect(fifth.lines).toEqual([]);
      await killAll();
      expect(await fifth.untilLine(/./)).toBe('has a slot');
    } finally {
      await killAll();
    }
  });

  test('a hierarchy: the parent refuses a child that has enough of its own', async () => {
    const project = install.open('hierarchy');
    project.saveProgram('hierarchy.mjs', `${GUIDE}hierarchy.md`, ['examples/guide/hierarchy.ts#hierarchy']);
    expect(await project.node(['hierarchy.mjs'])).toBe(shownBy(`${GUIDE}hierarchy.md`, 'hierarchy.mjs'));
  });

  test('a live change by the command line: a running program uses the new limits', async () => {
    const project = install.open('live-change');
    project.saveProgram('watch.mjs', `${GUIDE}configuration.md`, ['examples/guide/live-change.ts#watch']);
    await using program = project.start('watch.mjs');
    expect(await program.untilLine(/./)).toBe('rpm:60/min tpm:10000/min from code');
    for (const { line } of readSession(`${GUIDE}configuration.md`)) {
      if (line.startsWith('headgate '))
        await project.headgate(line.split(' ').slice(1), { HEADGATE_URL: 'file:./limits.db' });
    }
    expect(await program.untilLine(/resource/)).toBe('rpm:30/min tpm:10000/min from resource');
  });

  test('under the outage policy local this process grants the limit once, and the decision names the policy', async () => {
    const project = install.open('outage');
    project.saveProgram('outage.mjs', `${GUIDE}outages.md`, ['examples/guide/outages.ts#policy']);
    expect(await project.node(['outage.mjs'])).toBe(shownBy(`${GUIDE}outages.md`, 'outage.mjs'));
  });

  test('a test with the fake clock: vitest passes the tests of the page', async () => {
    const project = install.open('fake-clock');
    const regions = ['test', 'wait', 'outage'].map((name) => `examples/guide/testing.test.ts#${name}`);
    project.save('limits.test.ts', regions.map((region) => blockQuoting(`${GUIDE}testing.md`, region)).join('\n'));
    const report = await project.node(['../node_modules/vitest/vitest.mjs', 'run', '--reporter=json']);
    expect(JSON.parse(report)).toMatchObject({ numPassedTests: 3, numTotalTests: 3 });
  });

  test('a stream of an LLM: the pieces pass, and the call costs what the provider counted', async () => {
    const project = install.open('stream');
    await using provider = await startProvider();
    const regions = ['client', 'stream'].map((name) => `examples/openai-streaming.ts#${name}`);
    project.saveProgram('stream.mjs', `${GUIDE}llm.md`, regions, READ_STREAM);
    const printed = await project.node(['stream.mjs'], {
      OPENAI_API_KEY: 'sk-example',
      OPENAI_BASE_URL: `${provider.url}/v1`,
    });
    const [{ inputTokens, outputTokens } = { inputTokens: 0, outputTokens: 0 }] = provider.calls;
    const [text = '', cost] = printed.trimEnd().split('\n');
    expect(text).toContain('word word');
    expect(Number(cost)).toBe(inputTokens + outputTokens);
  });

  test('express middleware: the sixth report in an hour is refused, with the wait', async () => {
    const project = install.open('express');
    project.saveProgram('app.mjs', `${GUIDE}web.md`, ['examples/express.ts#app'], LISTEN);
    await using program = project.start('app.mjs');
    const port = await program.untilLine(/^\d+$/);
    const answers: Response[] = [];
    for (let at = 0; at < 6; at++) {
      answers.push(await fetch(`http://127.0.0.1:${port}/report`, { headers: { 'x-user': 'ada' } }));
    }
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 429]);
    expect(Number(answers.at(-1)?.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});
