import { tableDefinition, TTL_ATTRIBUTE } from '../../../backends/dynamodb/table/table-definition.js';
import { onlyIf, ref, type Resources, type Value } from '../intrinsics.js';
import { PARAMETERS, RESOURCES } from '../names.js';
import { CONDITIONS } from '../parameters.js';

/** Indexes whose projection differs in a table of an older layout. */
export const PROJECTION_PARAMETERS: Readonly<Record<string, string>> = {
  GSI1: PARAMETERS.gsi1Projection,
  GSI2: PARAMETERS.gsi2Projection,
};

/** The table with the definition of `createTable`. Deleting the stack keeps it. */
export function table(): Resources {
  const { AttributeDefinitions, KeySchema, BillingMode, StreamSpecification } = tableDefinition('');
  return {
    [RESOURCES.table]: {
      Type: 'AWS::DynamoDB::Table',
      DeletionPolicy: 'Retain',
      UpdateReplacePolicy: 'Retain',
      Properties: {
        TableName: ref(PARAMETERS.tableName),
        BillingMode: String(BillingMode),
        ...plain({ AttributeDefinitions, KeySchema }),
        GlobalSecondaryIndexes: indexes(),
        // CloudFormation has no StreamEnabled: a specified stream is enabled.
        StreamSpecification: { StreamViewType: String(StreamSpecification?.StreamViewType) },
        TimeToLiveSpecification: { AttributeName: TTL_ATTRIBUTE, Enabled: true },
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: ref(PARAMETERS.pointInTimeRecovery) },
        DeletionProtectionEnabled: ref(PARAMETERS.deletionProtection),
        SSESpecification: onlyIf(CONDITIONS.hasKmsKey, {
          SSEEnabled: true,
          SSEType: 'KMS',
          KMSMasterKeyId: ref(PARAMETERS.kmsKeyArn),
        }),
      },
    },
  };
}

function indexes(): Value {
  return (tableDefinition('').GlobalSecondaryIndexes ?? []).map(({ IndexName = '', KeySchema, Projection }) => {
    const parameter = PROJECTION_PARAMETERS[IndexName];
    const type = parameter === undefined ? String(Projection?.ProjectionType) : ref(parameter);
    return { IndexName, ...plain({ KeySchema }), Projection: { ProjectionType: type } };
  });
}

/** The SDK's types allow `undefined` everywhere; this definition has none. */
function plain(definition: object): { readonly [name: string]: Value } {
  return JSON.parse(JSON.stringify(definition)) as { readonly [name: string]: Value };
}
