import { expect, test } from 'vitest';
import { hasArguments, parseList } from './process-list.js';
import { listProcesses } from './processes.js';

test('listProcesses lists this process with its arguments', () => {
  const line = listProcesses().get(process.pid);
  expect(line).toMatch(/node/);
  expect(hasArguments(line, [String(line).split(' ').at(-1) ?? ''])).toBe(true);
  expect(hasArguments(line, ['--of-another-process'])).toBe(false);
});

test('parseList reads the output of `ps` line by line', () => {
  const list = parseList(
    '    1 /sbin/init splash\n 4711 "C:\\dynoxide.exe" serve --db-path "C:\\my data\\a.db"\n\n 9\n',
  );
  expect([...list.keys()]).toEqual([1, 4711]);
  expect(hasArguments(list.get(4711), ['serve', '--db-path', 'C:\\my data\\a.db'])).toBe(true);
  expect(hasArguments(list.get(4711), ['--db-path', 'C:\\my data\\b.db'])).toBe(false);
});

test('hasArguments compares whole words, not only the end of the command line', () => {
  expect(hasArguments('java -xserve --port 1', ['serve', '--port', '1'])).toBe(false);
  expect(hasArguments(undefined, ['serve'])).toBe(false);
});
