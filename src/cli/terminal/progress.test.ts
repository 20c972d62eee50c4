import { expect, test } from 'vitest';
import { fakeTerminal } from '../../../tests/support/cli/fake-terminal.js';
import { createProgress } from './progress.js';

function started(watched: boolean) {
  const terminal = fakeTerminal({ watched });
  let nowMs = 5_000;
  const progress = createProgress(terminal, () => nowMs);
  return { terminal, progress, advance: (ms: number) => void (nowMs += ms) };
}

test('progress shows nothing in the first second, then redraws its line, and clears it at the end', () => {
  const { terminal, progress, advance } = started(true);
  advance(999);
  progress.show('read 10');
  expect(terminal.errText()).toBe('');
  advance(1);
  progress.show('read 11');
  advance(99);
  progress.show('too soon after');
  advance(1);
  progress.show('read 12');
  progress.clear();
  progress.clear();
  expect(terminal.errText()).toBe('\r\u001B[Kread 11\r\u001B[Kread 12\r\u001B[K');
});

test('progress with afterMs 0 is shown at once', () => {
  const { terminal, progress } = started(true);
  progress.show('purging', 0);
  expect(terminal.errText()).toBe('\r\u001B[Kpurging');
});

test('progress shows nothing without a terminal', () => {
  const { terminal, progress, advance } = started(false);
  advance(60_000);
  progress.show('read 10');
  progress.clear();
  expect(terminal.errText()).toBe('');
});
