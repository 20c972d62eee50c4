import { CommanderError } from 'commander';
import { describe, expect, test } from 'vitest';
import { fakeTerminal } from '../../../tests/support/cli/fake-terminal.js';
import { ERRORS } from '../../core/error-codes.js';
import {
  BackendUnavailable,
  EntityNotFound,
  HeadgateError,
  LimitsNotConfigured,
  NamespaceNotFound,
  ValidationError,
} from '../../core/errors.js';
import { describeFailure, printFailure } from './failure.js';

test.each(Object.entries(ERRORS))(
  'an error with the code %s exits with the code of the error table',
  (code, { exit }) => {
    expect(describeFailure(new HeadgateError(code as keyof typeof ERRORS, 'x')).exitCode).toBe(exit);
  },
);

test('an unexpected error exits with 1, and prints its stack only with HEADGATE_DEBUG=1', () => {
  const failure = describeFailure(new TypeError('x is\n  not a function'));
  expect(failure).toMatchObject({
    exitCode: 1,
    message: 'unexpected: x is not a function',
    json: { name: 'TypeError', code: 'unexpected', message: 'x is not a function' },
  });
  const quiet = fakeTerminal();
  printFailure(quiet, failure, false);
  expect(quiet.errText()).toBe('headgate: unexpected: x is not a function\n');
  const debugging = fakeTerminal({ env: { HEADGATE_DEBUG: '1' } });
  printFailure(debugging, failure, false);
  expect(debugging.errText()).toMatch(/\nTypeError: x is\n[^]*\n {4}at /);
});

test('a thrown value that is not an Error is printed in one line', () => {
  expect(describeFailure('gone').message).toBe('unexpected: gone');
});

describe('usage errors', () => {
  test('a usage error exits with 3, in one line', () => {
    const error = new CommanderError(1, 'commander.unknownOption', `error: unknown option '--x'\n(Did you mean --y?)`);
    expect(describeFailure(error)).toMatchObject({
      exitCode: 3,
      message: `unknown option '--x' (Did you mean --y?)`,
      json: { code: 'input.invalid' },
    });
  });

  test('help and version are not errors', () => {
    for (const [exitCode, code] of [
      [0, 'commander.helpDisplayed'],
      [0, 'commander.version'],
      [1, 'commander.help'],
    ] as const) {
      expect(describeFailure(new CommanderError(exitCode, code, ''))).toMatchObject({ exitCode: 0, message: null });
    }
  });
});

test.each([
  [new NamespaceNotFound('x'), 'Namespace x is not registered: `headgate namespace create` creates it'],
  [new NamespaceNotFound('x', 'deleted'), 'Namespace x is deleted'],
  [
    new LimitsNotConfigured('u', 'r'),
    'No stored limits for entity u on resource r; the command does not know limits in code. `headgate resource set r -l rpm:100/min` stores some, which then replace those in code',
  ],
  [new ValidationError('consume', 'more', {}), 'Expected `-c` to be more, got {}'],
  [new ValidationError('consume.rpn', 'known', 'rpn'), 'Expected `-c rpn` to be known, got "rpn"'],
  [new ValidationError('leaseTtlMs', 'more', 1), 'Expected `leaseTtlMs` to be more, got 1'],
  [new ValidationError('entityId', 'an id', 1), 'Expected `entityId` to be an id, got 1'],
  [new BackendUnavailable('The store is out', 'timeout'), 'The store is out'],
])('the advice of %s names a command or an option', (error, message) => {
  expect(describeFailure(error).message).toBe(message);
});

test('the line of an error with exit code 4 also has the notes about the store', () => {
  const lineOf = (error: unknown): string => {
    const terminal = fakeTerminal();
    terminal.note('the store is in memory');
    printFailure(terminal, describeFailure(error), false);
    return terminal.errText();
  };
  expect(lineOf(new EntityNotFound('x'))).toBe('headgate: Entity x does not exist (the store is in memory)\n');
  expect(lineOf(new ValidationError('x', 'y', 1))).toBe('headgate: Expected `x` to be y, got 1\n');
});
