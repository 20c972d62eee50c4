import { loadAwsServiceSpecSync } from '@aws-cdk/aws-service-spec';

const database = loadAwsServiceSpecSync();

export type SpecResource = ReturnType<typeof lookUp>[number];
export type SpecProperties = SpecResource['properties'];
export type SpecType = SpecProperties[string]['type'];

function lookUp(type: string) {
  return [...database.lookup('resource', 'cloudFormationType', 'equals', type)];
}

const found = new Map<string, SpecResource | undefined>();

/** What CloudFormation knows of a kind of resource. */
export function findSpec(type: string): SpecResource | undefined {
  if (!found.has(type)) found.set(type, lookUp(type)[0]);
  return found.get(type);
}

/** The properties of a type that a specification refers to. */
export function propertiesOf(type: Extract<SpecType, { readonly type: 'ref' }>): SpecProperties {
  return database.get('typeDefinition', type.reference.$ref).properties;
}

/**
 * The variants of a type. One that allows any JSON says nothing beside one that has a shape: both stand there for
 * properties whose schema was once looser.
 */
export function variantsOf(type: SpecType): readonly SpecType[] {
  if (type.type !== 'union') return [type];
  const variants = type.types.flatMap(variantsOf);
  const shaped = variants.filter((variant) => ['ref', 'array', 'map', 'tag'].includes(variant.type));
  return shaped.length === 0 ? variants : variants.filter((variant) => variant.type !== 'json');
}
