import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { beforeAll, expect, test } from 'vitest';

let printed = '';

beforeAll(() => {
  const built = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
  printed = execFileSync(process.execPath, [built, 'tour'], { encoding: 'utf8', timeout: 30_000 });
});

test.each([
  ['grants and an exact wait', /call 3: granted .*\n.*call 4: denied by rpm of user-1, retry in 1000 ms/],
  ['that 1 ms less is not enough', /999 ms later: denied .*retry in 1 ms\n.*1 ms later: {3}granted/],
  ['debt and recovery', /settled 7,000: -1000 tokens left\n.*the next 500 fit in 15000 ms\n.*15000 ms later: granted/],
  ['slots that are held and expire', /two holders: +denied .*\n.*one commits: +granted .*\n.*no heartbeat: granted/],
  ['a parent that refuses', /bob asks for 80: +denied by rpm of proj-1/],
  ['usage as a chart', /05:00 █{40} 20000\n/],
])('the tour shows %s', (_, line) => {
  expect(printed).toMatch(line);
});

test('two real processes on one file are granted exactly what there is', () => {
  const [first, second, together] = [/process 1 +(\d+)/, /process 2 +(\d+)/, /together +(\d+)/].map((line) =>
    Number(line.exec(printed)?.[1]),
  );
  expect(together).toBe(100);
  expect((first ?? 0) + (second ?? 0)).toBe(100);
  expect(Math.min(first ?? 0, second ?? 0)).toBeGreaterThanOrEqual(20);
});
