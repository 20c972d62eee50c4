import { findSpec, type SpecType } from './cfn-spec.js';

type Fields = Readonly<Record<string, unknown>>;

/** The names that a template may refer to. */
export interface Names {
  readonly parameters: Readonly<Record<string, Fields>>;
  readonly conditions: Fields;
  readonly resources: Readonly<Record<string, Fields>>;
  /** The names that were referred to. */
  readonly used: Set<string>;
}

const PSEUDO = ['AWS::AccountId', 'AWS::NoValue', 'AWS::Partition', 'AWS::Region', 'AWS::StackName'];

/** The intrinsic function of a value, if it has no other field. */
export function intrinsicOf(value: unknown): readonly [name: string, argument: unknown] | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  const [entry, ...more] = Object.entries(value);
  if (entry === undefined || more.length > 0) return null;
  return entry[0] === 'Ref' || entry[0].startsWith('Fn::') ? entry : null;
}

/** `check` is for the branches of `Fn::If`; `types` are the allowed types. */
export function checkIntrinsic(
  place: string,
  value: unknown,
  names: Names,
  check: (branch: unknown) => string[],
  types: readonly SpecType[] = [],
): string[] {
  const [name, argument] = intrinsicOf(value) ?? [];
  const list = Array.isArray(argument) ? (argument as readonly unknown[]) : [];
  switch (name) {
    case 'Ref':
      return checkRef(place, String(argument), names, types);
    case 'Fn::GetAtt':
      return checkAttribute(place, String(list[0]), String(list[1]), names, types);
    case 'Fn::Sub':
      return [...checkSub(place, String(argument), names), ...checkText(place, 'Fn::Sub', types)];
    case 'Fn::If':
      names.used.add(String(list[0]));
      if (list.length !== 3) return [`${place}: Fn::If needs a condition and two values`];
      return [
        ...(String(list[0]) in names.conditions ? [] : [`${place}: there is no condition ${String(list[0])}`]),
        ...list.slice(1).flatMap(check),
      ];
    case 'Fn::Equals':
    case 'Fn::Not':
      return list.flatMap((part) => checkLeaf(place, part, names));
    case undefined:
    default:
      return [`${place}: ${name ?? JSON.stringify(value)} is no function that the checker knows`];
  }
}

/** A text, or a function that returns one. */
export function checkLeaf(place: string, value: unknown, names: Names): string[] {
  if (typeof value === 'string') return [];
  return checkIntrinsic(place, value, names, (branch) => checkLeaf(place, branch, names));
}

function checkRef(place: string, name: string, names: Names, types: readonly SpecType[]): string[] {
  names.used.add(name);
  if (name === 'AWS::NoValue') return [];
  if (PSEUDO.includes(name) || name in names.resources) return checkText(place, `Ref ${name}`, types);
  const parameter = names.parameters[name];
  if (parameter === undefined) return [`${place}: there is no ${name} to refer to`];
  const fits = types.length === 0 || types.some((type) => holds(type, parameter));
  return fits ? [] : [`${place}: the parameter ${name} is a ${String(parameter['Type'])}`];
}

/** CloudFormation converts only `"true"` and `"false"` to booleans. */
function holds({ type }: SpecType, { Type, AllowedValues }: Fields): boolean {
  if (type === 'string') return Type === 'String';
  if (type === 'integer' || type === 'number') return Type === 'Number';
  return type === 'boolean' && Type === 'String' && JSON.stringify(AllowedValues) === '["true","false"]';
}

function checkAttribute(
  place: string,
  resource: string,
  attribute: string,
  { resources }: Names,
  types: readonly SpecType[],
): string[] {
  const type = String(resources[resource]?.['Type']);
  if (findSpec(type)?.attributes[attribute] === undefined) return [`${place}: there is no ${resource}.${attribute}`];
  return checkText(place, `${resource}.${attribute}`, types);
}

function checkText(place: string, what: string, types: readonly SpecType[]): string[] {
  return types.length === 0 || types.some(({ type }) => type === 'string') ? [] : [`${place}: ${what} is text`];
}

function checkSub(place: string, text: string, names: Names): string[] {
  return Array.from(text.matchAll(/\$\{(?!!)([^}]*)\}/g), ([, target = '']) => target).flatMap((target) => {
    const cut = target.indexOf('.');
    return cut < 0
      ? checkRef(place, target, names, [])
      : checkAttribute(place, target.slice(0, cut), target.slice(cut + 1), names, []);
  });
}
