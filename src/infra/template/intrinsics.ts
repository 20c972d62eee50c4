/** The JSON values of a template. */
export type Value = string | number | boolean | readonly Value[] | { readonly [key: string]: Value };

export interface Resource {
  readonly Type: string;
  readonly Condition?: string;
  readonly DependsOn?: string;
  readonly DeletionPolicy?: 'Retain' | 'Delete';
  readonly UpdateReplacePolicy?: 'Retain' | 'Delete';
  readonly Metadata?: Value;
  readonly Properties: { readonly [name: string]: Value };
}

export type Resources = Readonly<Record<string, Resource>>;

export interface Parameter {
  readonly Type: 'String' | 'Number';
  readonly Description: string;
  readonly Default: string | number;
  readonly AllowedValues?: readonly (string | number)[];
  readonly AllowedPattern?: string;
  readonly ConstraintDescription?: string;
  readonly MinValue?: number;
  readonly MaxValue?: number;
}

export interface Output {
  readonly Description: string;
  readonly Value: Value;
  readonly Condition?: string;
}

const NO_VALUE: Value = { Ref: 'AWS::NoValue' };

export function ref(name: string): Value {
  return { Ref: name };
}

export function attribute(resource: string, name: string): Value {
  return { 'Fn::GetAtt': [resource, name] };
}

/** `${Name}` is replaced by a parameter or a resource; `${!name}` stays as `${name}`. */
export function substitute(text: string): Value {
  return { 'Fn::Sub': text };
}

export function either(condition: string, then: Value, otherwise: Value): Value {
  return { 'Fn::If': [condition, then, otherwise] };
}

export function onlyIf(condition: string, then: Value): Value {
  return either(condition, then, NO_VALUE);
}

export function equals(a: Value, b: Value): Value {
  return { 'Fn::Equals': [a, b] };
}

export function not(condition: Value): Value {
  return { 'Fn::Not': [condition] };
}
