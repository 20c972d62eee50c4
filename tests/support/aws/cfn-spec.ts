import { loadAwsServiceSpecSync } from '@aws-cdk/aws-service-spec';

const database = loadAwsServiceSpecSync();

export type SpecResource = ReturnType<typeof lookUp>[number];
export type SpecProperties = SpecResource['properties'];
export type SpecType = SpecProperties[string]['type'];

function lookUp(type: string) {
  return [...database.lookup('resource', 'cloudFormationType', 'equals', type)];
}

const found = new Map<string, SpecResource | undefined>();

/** CloudFormation's specification of a type of resource. */
export function findSpec(type: string): SpecResource | undefined {
  if (!found.has(type)) found.set(type, lookUp(type)[0]);
  return found.get(type);
}

/** The properties of a type that a specification refers to. */
export function propertiesOf(type: Extract<SpecType, { readonly type: 'ref' }>): SpecProperties {
  return database.get('typeDefinition', type.reference.$ref).properties;
}

/**
 * The variants of a type. A variant that allows any JSON is dropped if another one has a shape: some properties list
 * both, because their schema was less strict before.
 */
export function variantsOf(type: SpecType): readonly SpecType[] {
  if (type.type !== 'union') return [type];
  const variants = type.types.flatMap(variantsOf);
  const shaped = variants.filter((variant) => ['ref', 'array', 'map', 'tag'].includes(variant.type));
  return shaped.length === 0 ? variants : variants.filter((variant) => variant.type !== 'json');
}
