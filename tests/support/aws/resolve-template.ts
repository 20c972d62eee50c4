import type { Template } from '../../../src/infra/template.js';
import { intrinsicOf } from './cfn-intrinsics.js';

/** A part of a template as CloudFormation resolves it, for the given parameters and attributes (`Table.Arn`). */
export function resolveValue(
  template: Template,
  value: unknown,
  given: Readonly<Record<string, string>> = {},
): unknown {
  const resolve = (part: unknown): unknown => resolveValue(template, part, given);
  const lookUp = (name: string): string => {
    const found = given[name] ?? template.Parameters[name]?.Default;
    if (found === undefined) throw new TypeError(`nothing is given for ${name}`);
    return String(found);
  };
  const [name, argument] = intrinsicOf(value) ?? [];
  const list = Array.isArray(argument) ? (argument as readonly unknown[]) : [];
  switch (name) {
    case 'Ref':
      return lookUp(String(argument));
    case 'Fn::GetAtt':
      return lookUp(list.join('.'));
    case 'Fn::Sub':
      return String(argument).replaceAll(/\$\{([^!}][^}]*)\}/g, (_, target: string) => lookUp(target));
    case 'Fn::If':
      return resolve(resolve(template.Conditions[String(list[0])]) === true ? list[1] : list[2]);
    case 'Fn::Not':
      return resolve(list[0]) !== true;
    case 'Fn::Equals':
      return resolve(list[0]) === resolve(list[1]);
    case undefined:
    default:
      if (Array.isArray(value)) return value.map(resolve);
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, resolve(part)]));
  }
}
