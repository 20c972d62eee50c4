import type { Template } from '../../../src/infra/template.js';
import type { Resources } from '../../../src/infra/template/intrinsics.js';
import { intrinsicOf } from './cfn-intrinsics.js';
import { resolveValue } from './resolve-template.js';

const NOTHING = Symbol('AWS::NoValue');

/** The template with these parameters as defaults: without `Fn::If` and without resources whose condition is false. */
export function settleTemplate(template: Template, given: Readonly<Record<string, string>> = {}): Template {
  const holds = (name: string): boolean => resolveValue(template, template.Conditions[name], given) === true;
  const isMade = ({ Condition }: { readonly Condition?: string }): boolean =>
    Condition === undefined || holds(Condition);
  const settle = (value: unknown): unknown => {
    const [name, argument] = intrinsicOf(value) ?? [];
    if (name === 'Ref' && argument === 'AWS::NoValue') return NOTHING;
    if (name === 'Fn::If') {
      const [condition, then, otherwise] = argument as readonly unknown[];
      return settle(holds(String(condition)) ? then : otherwise);
    }
    if (Array.isArray(value)) return value.map(settle).filter((part) => part !== NOTHING);
    if (typeof value !== 'object' || value === null) return value;
    const parts = Object.entries(value).map(([key, part]) => [key, settle(part)] as const);
    return Object.fromEntries(parts.filter(([, part]) => part !== NOTHING));
  };
  const made = Object.entries(template.Resources).filter(([, resource]) => isMade(resource));
  const outputs = Object.entries(template.Outputs).filter(([, output]) => isMade(output));
  const resources = settle(Object.fromEntries(made)) as Resources;
  const parameters = Object.entries(template.Parameters).map(
    ([name, parameter]) => [name, { ...parameter, Default: given[name] ?? parameter.Default }] as const,
  );
  return {
    ...template,
    Parameters: Object.fromEntries(parameters),
    Conditions: {},
    Resources: unconditional(Object.entries(resources)),
    Outputs: unconditional(outputs),
  };
}

function unconditional<T extends { readonly Condition?: string }>(
  entries: readonly (readonly [string, T])[],
): Record<string, Omit<T, 'Condition'>> {
  return Object.fromEntries(
    entries.map(([id, entry]) => {
      const { Condition: _, ...rest } = entry;
      return [id, rest];
    }),
  );
}
