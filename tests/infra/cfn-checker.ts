import { findSpec, propertiesOf, type SpecProperties, type SpecType, variantsOf } from '../support/aws/cfn-spec.js';
import { checkIntrinsic, intrinsicOf, type Names } from '../support/aws/cfn-intrinsics.js';
import { checkPolicyDocument } from './cfn-policy-document.js';

type Fields = Readonly<Record<string, unknown>>;

/** A parsed template from any source. */
export interface AnyTemplate {
  readonly Parameters?: Readonly<Record<string, Fields>>;
  readonly Conditions?: Fields;
  readonly Resources: Readonly<Record<string, Fields>>;
  readonly Outputs?: Readonly<Record<string, Fields>>;
}

const SECTIONS = [
  'AWSTemplateFormatVersion',
  'Description',
  'Metadata',
  'Parameters',
  'Conditions',
  'Resources',
  'Outputs',
];
const OF_RESOURCES = [
  'Type',
  'Properties',
  'Condition',
  'DependsOn',
  'DeletionPolicy',
  'UpdateReplacePolicy',
  'Metadata',
];
const OF_PARAMETERS = [
  'Type',
  'Description',
  'Default',
  'AllowedValues',
  'AllowedPattern',
  'ConstraintDescription',
  'MinValue',
  'MaxValue',
];
const OF_OUTPUTS = ['Description', 'Value', 'Condition', 'Export'];

/**
 * The problems of a template by CloudFormation's published specification of resources, as sentences that begin with the
 * place. Supports the intrinsic functions that our templates use.
 */
export function checkTemplate(template: AnyTemplate): string[] {
  const { Parameters = {}, Conditions = {}, Resources, Outputs = {} } = template;
  const used = new Set<string>();
  const names: Names = { parameters: Parameters, conditions: Conditions, resources: Resources, used };
  const problems = [
    ...unknown('template', template, SECTIONS),
    ...Object.entries(Parameters).flatMap(([name, fields]) => [
      ...unknown(name, fields, OF_PARAMETERS),
      ...missing(name, fields, ['Type', 'Default', 'Description']),
    ]),
    ...Object.entries(Conditions).flatMap(([name, value]) => checkIntrinsic(name, value, names, () => [])),
    ...Object.entries(Resources).flatMap(([name, fields]) => checkResource(name, fields, names)),
    ...Object.entries(Outputs).flatMap(([name, fields]) => [
      ...unknown(name, fields, OF_OUTPUTS),
      ...missing(name, fields, ['Value', 'Description']),
      ...checkCondition(name, fields['Condition'], names),
      ...checkValue(`${name}.Value`, fields['Value'] ?? '', { type: 'string' }, names),
    ]),
  ];
  const idle = [...Object.keys(Parameters), ...Object.keys(Conditions)].filter((name) => !used.has(name));
  return [...problems, ...idle.map((name) => `${name}: nothing uses it`)];
}

function checkResource(name: string, fields: Fields, names: Names): string[] {
  const type = String(fields['Type']);
  const spec = findSpec(type);
  if (spec === undefined) return [`${name}: ${type} is no kind of resource`];
  const properties = (fields['Properties'] ?? {}) as Fields;
  return [
    ...unknown(name, fields, OF_RESOURCES),
    ...checkCondition(name, fields['Condition'], names),
    ...checkProperties(name, properties, spec.properties, names),
  ];
}

function checkCondition(place: string, condition: unknown, { conditions, used }: Names): string[] {
  if (condition === undefined) return [];
  if (typeof condition !== 'string') return [wrong(place, condition, 'the name of a condition')];
  used.add(condition);
  return condition in conditions ? [] : [`${place}: there is no condition ${condition}`];
}

function checkProperties(place: string, value: Fields, spec: SpecProperties, names: Names): string[] {
  const required = Object.entries(spec).flatMap(([name, property]) => (property.required === true ? [name] : []));
  return [
    ...unknown(place, value, Object.keys(spec)),
    ...missing(place, value, required),
    ...Object.entries(value).flatMap(([name, part]) => {
      const property = spec[name];
      if (property === undefined) return [];
      const where = `${place}.${name}`;
      if (name.endsWith('PolicyDocument') || name === 'KeyPolicy') return checkPolicyDocument(where, part, names);
      return checkValue(where, part, property.type, names);
    }),
  ];
}

/** The variant of a union with the fewest problems. */
function checkValue(place: string, value: unknown, type: SpecType, names: Names): string[] {
  if (intrinsicOf(value) !== null) {
    return checkIntrinsic(place, value, names, (branch) => checkValue(place, branch, type, names), variantsOf(type));
  }
  const attempts = variantsOf(type).map((variant) => checkVariant(place, value, variant, names));
  return attempts.toSorted((a, b) => a.length - b.length)[0] ?? [`${place}: its type has no variant`];
}

function checkVariant(place: string, value: unknown, type: SpecType, names: Names): string[] {
  switch (type.type) {
    case 'ref':
      return isFields(value)
        ? checkProperties(place, value, propertiesOf(type), names)
        : [wrong(place, value, 'an object')];
    case 'tag':
      return isFields(value) ? unknown(place, value, ['Key', 'Value']) : [wrong(place, value, 'a tag')];
    case 'array':
      if (!Array.isArray(value)) return [wrong(place, value, 'a list')];
      return value.flatMap((part, at) => checkValue(`${place}[${at}]`, part, type.element, names));
    case 'map':
      if (!isFields(value)) return [wrong(place, value, 'an object')];
      return Object.entries(value).flatMap(([key, part]) => checkValue(`${place}.${key}`, part, type.element, names));
    case 'json':
      return isFields(value) ? [] : [wrong(place, value, 'an object')];
    case 'string':
      if (typeof value !== 'string') return [wrong(place, value, 'text')];
      return type.allowedValues === undefined || type.allowedValues.includes(value)
        ? []
        : [wrong(place, value, `one of ${type.allowedValues.join(', ')}`)];
    case 'date-time':
      return typeof value === 'string' ? [] : [wrong(place, value, 'text')];
    case 'integer':
      return Number.isInteger(value) ? [] : [wrong(place, value, 'a whole number')];
    case 'number':
      return typeof value === 'number' ? [] : [wrong(place, value, 'a number')];
    case 'boolean':
      return typeof value === 'boolean' ? [] : [wrong(place, value, 'true or false')];
    case 'null':
    case 'union':
      return [wrong(place, value, type.type)];
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function wrong(place: string, value: unknown, expected: string): string {
  return `${place}: expected ${expected}, got ${JSON.stringify(value)}`;
}

function unknown(place: string, value: object, known: readonly string[]): string[] {
  return Object.keys(value).flatMap((name) => (known.includes(name) ? [] : [`${place}: there is no ${name}`]));
}

function missing(place: string, value: object, required: readonly string[]): string[] {
  return required.flatMap((name) => (name in value ? [] : [`${place}: it lacks ${name}`]));
}
