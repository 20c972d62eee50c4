import { ValidationError } from '../../core/errors.js';
import type { Template } from '../template.js';
import { PARAMETERS } from '../template/names.js';
import type { Stack, StackParameter } from './cloudformation.js';

/** `Name=Value`, as it is typed; the value may be empty and contain "=". */
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
    throw new ValidationError('--param', 'anything but the name of the table: that is --env or --table', name);
  }
  if (!Object.hasOwn(Parameters, name)) {
    throw new ValidationError('--param', `one of ${Object.keys(Parameters).join(', ')}`, name);
  }
}

/**
 * What to send with a change set: what is given, and what the stack has for the rest. A parameter that the stack does not
 * know yet gets the default of the template, by not being sent.
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
