import { ValidationError } from '../../core/errors.js';
import type { Template } from '../template.js';
import { PARAMETERS } from '../template/names.js';
import type { Stack, StackParameter } from './cloudformation.js';

/** Parses `Name=Value`. The value may be empty and may contain "=". */
export function parseParameters(given: readonly string[], template: Template): Readonly<Record<string, string>> {
  const parsed = given.map((text) => {
    const cut = text.indexOf('=');
    const name = cut < 0 ? text : text.slice(0, cut);
    if (cut < 1) throw new ValidationError('--param', 'Name=Value', text);
    checkName(name, template);
    return [name, text.slice(cut + 1)] as const;
  });
  return Object.fromEntries(parsed);
}

function checkName(name: string, { Parameters }: Template): void {
  if (name === PARAMETERS.tableName) {
    throw new ValidationError(
      '--param',
      'a parameter other than the name of the table, which --env or --table sets',
      name,
    );
  }
  if (!Object.hasOwn(Parameters, name)) {
    throw new ValidationError('--param', `one of ${Object.keys(Parameters).join(', ')}`, name);
  }
}

/**
 * The parameters of a change set: the given values, and the previous values of the other parameters that the stack has.
 * A parameter that the stack does not have yet is not sent, so it gets the template's default.
 */
export function chooseParameters(
  template: Template,
  stack: Stack | null,
  given: Readonly<Record<string, string>>,
): readonly StackParameter[] {
  return Object.keys(template.Parameters).flatMap((name): readonly StackParameter[] => {
    const value = given[name];
    if (value !== undefined) return [{ name, value }];
    return stack !== null && Object.hasOwn(stack.parameters, name) ? [{ name, previous: true }] : [];
  });
}
