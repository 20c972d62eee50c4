import fc from 'fast-check';
import { expect, test } from 'vitest';
import { chooseNames } from './stack-name.js';

/** https://docs.aws.amazon.com/AWSCloudFormation/latest/APIReference/API_CreateChangeSet.html */
const STACK = /^[a-zA-Z][-a-zA-Z0-9]{0,127}$/;

test('an environment gives stack and table one name', () => {
  expect(chooseNames({})).toEqual({ stack: 'headgate', table: 'headgate', flag: '', env: null });
  expect(chooseNames({ env: 'pre' })).toEqual({
    stack: 'headgate-pre',
    table: 'headgate-pre',
    flag: ' --env pre',
    env: 'pre',
  });
});

test('a table whose name is not a valid stack name keeps it and gets a unique stack name', () => {
  expect(chooseNames({ table: 'my-limits' })).toMatchObject({ stack: 'my-limits', table: 'my-limits' });
  const { stack, table } = chooseNames({ table: 'my_limits' });
  expect(table).toBe('my_limits');
  expect(stack).toMatch(/^my-limits-[0-9a-f]{8}$/);
  expect(chooseNames({ table: 'my.limits' }).stack).not.toBe(stack);
});

test('every accepted choice gives a name that CloudFormation accepts', () => {
  const names = fc.oneof(fc.string({ maxLength: 120 }), fc.stringMatching(/^[a-zA-Z][\w.-]{0,130}$/));
  let accepted = 0;
  fc.assert(
    fc.property(names, fc.boolean(), (name, isEnv) => {
      try {
        expect(chooseNames(isEnv ? { env: name } : { table: name }).stack).toMatch(STACK);
        accepted += 1;
      } catch (error) {
        expect(error).toMatchObject({ code: 'input.invalid' });
      }
    }),
  );
  expect(accepted).toBeGreaterThan(0);
});

test.each([
  [{ env: '' }, /^Expected `--env` to be 1 to 40 letters/],
  [{ env: 'pre_1' }, /^Expected `--env`/],
  [{ env: '-pre' }, /^Expected `--env`/],
  [{ table: '9lives' }, /^Expected `--table` to be a letter/],
  [{ env: 'pre', table: 'limits' }, /^Expected `--table` to be left out when --env is given, got "limits"$/],
])('the names %j are refused', (choice, says) => {
  expect(() => chooseNames(choice)).toThrow(says);
});
