import { tableDefinition, TTL_ATTRIBUTE } from '../../backends/dynamodb/table-definition.js';
import { ref, type Resources, type Value } from './intrinsics.js';
import { PARAMETERS, RESOURCES } from './names.js';

/** The table, as `createTable` makes it. Deleting the stack leaves it where it is. */
export function table(): Resources {
  const { AttributeDefinitions, KeySchema, GlobalSecondaryIndexes, BillingMode, StreamSpecification } =
    tableDefinition('');
  return {
    [RESOURCES.table]: {
      Type: 'AWS::DynamoDB::Table',
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
      Properties: {
        TableName: ref(PARAMETERS.tableName),
        BillingMode: String(BillingMode),
        ...plain({ AttributeDefinitions, KeySchema, GlobalSecondaryIndexes }),
        // CloudFormation knows no StreamEnabled: a stream that is specified is enabled.
        StreamSpecification: { StreamViewType: String(StreamSpecification?.StreamViewType) },
        TimeToLiveSpecification: { AttributeName: TTL_ATTRIBUTE, Enabled: true },
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: ref(PARAMETERS.pointInTimeRecovery) },
        DeletionProtectionEnabled: ref(PARAMETERS.deletionProtection),
      },
    },
  };
}

/** The SDK's types allow `undefined` everywhere; its data holds none. */
function plain(definition: object): { readonly [name: string]: Value } {
  return JSON.parse(JSON.stringify(definition)) as { readonly [name: string]: Value };
}
