import type { CreateTableInput, KeySchemaElement, TableDescription } from '@aws-sdk/client-dynamodb';

export const INDEXES = ['GSI1', 'GSI2', 'GSI3', 'GSI4'] as const;

/** The attribute by which DynamoDB deletes expired records. */
export const TTL_ATTRIBUTE = 'ttl';

/**
 * Every index has keys only: an index with balances would be written with every take, at twice the price. The stream
 * has both images, because usage is their difference.
 */
export function tableDefinition(tableName: string): CreateTableInput {
  const keys = ['PK', 'SK', ...INDEXES.flatMap((name) => [`${name}PK`, `${name}SK`])];
  return {
    TableName: tableName,
    AttributeDefinitions: keys.map((name) => ({ AttributeName: name, AttributeType: 'S' })),
    KeySchema: keySchema(''),
    GlobalSecondaryIndexes: INDEXES.map((name) => ({
      IndexName: name,
      KeySchema: keySchema(name),
      Projection: { ProjectionType: 'KEYS_ONLY' },
    })),
    BillingMode: 'PAY_PER_REQUEST',
    StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' },
  };
}

function keySchema(prefix: string): KeySchemaElement[] {
  return [
    { AttributeName: `${prefix}PK`, KeyType: 'HASH' },
    { AttributeName: `${prefix}SK`, KeyType: 'RANGE' },
  ];
}

function namesOf(schema: readonly KeySchemaElement[] = []): string {
  return schema.map((element) => element.AttributeName).join(' ');
}

/** Whether a table has the keys and indexes of a Headgate table. */
export function isOfThisShape({ KeySchema, GlobalSecondaryIndexes = [] }: TableDescription): boolean {
  return (
    namesOf(KeySchema) === 'PK SK' &&
    INDEXES.every((name) =>
      GlobalSecondaryIndexes.some(
        (index) => index.IndexName === name && namesOf(index.KeySchema) === `${name}PK ${name}SK`,
      ),
    )
  );
}
