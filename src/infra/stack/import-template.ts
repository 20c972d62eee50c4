import type { Template } from '../template.js';
import { ref, type Resource, type Value } from '../template/intrinsics.js';
import { PARAMETERS, RESOURCES } from '../template/names.js';
import { parameters } from '../template/parameters.js';
import { PROJECTION_PARAMETERS, table } from '../template/table.js';
import type { TableFacts } from './table-facts.js';

/** A template with only an existing table, and the parameters that describe the table. */
export interface ImportTemplate {
  readonly template: Omit<Template, 'Conditions' | 'Outputs'>;
  readonly parameters: Readonly<Record<string, string>>;
}

/**
 * Describes the table as it is. CloudFormation compares templates, not tables: the update after the import finds the
 * differences from the full template and applies them. An import allows no outputs and no resource that is not
 * imported.
 * https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-manually.html
 */
export function buildImportTemplate(facts: TableFacts): ImportTemplate {
  const chosen: Readonly<Record<string, string>> = {
    [PARAMETERS.tableName]: facts.name,
    ...Object.fromEntries(
      Object.entries(PROJECTION_PARAMETERS).map(([index, parameter]) => [
        parameter,
        facts.indexes[index]?.projection ?? 'KEYS_ONLY',
      ]),
    ),
    ...(facts.kmsKeyArn === null ? {} : { [PARAMETERS.kmsKeyArn]: facts.kmsKeyArn }),
  };
  const known = parameters();
  const used = Object.keys(chosen).flatMap((name) => {
    const parameter = known[name];
    return parameter === undefined ? [] : [[name, parameter] as const];
  });
  return {
    parameters: chosen,
    template: {
      AWSTemplateFormatVersion: '2010-09-09',
      Description: 'Headgate: a table that exists, before the rest of its stack is added',
      Metadata: { Headgate: { Template: 1 } },
      Parameters: Object.fromEntries(used),
      Resources: { [RESOURCES.table]: currentTable(facts) },
    },
  };
}

function currentTable({ pointInTimeRecovery, deletionProtection, kmsKeyArn }: TableFacts): Resource {
  const { [RESOURCES.table]: whole } = table();
  if (whole === undefined) throw new TypeError('the template has no table');
  const { SSESpecification: _, ...properties } = whole.Properties;
  const key: Value = { SSEEnabled: true, SSEType: 'KMS', KMSMasterKeyId: ref(PARAMETERS.kmsKeyArn) };
  return {
    ...whole,
    Properties: {
      ...properties,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: pointInTimeRecovery },
      DeletionProtectionEnabled: deletionProtection,
      ...(kmsKeyArn === null ? {} : { SSESpecification: key }),
    },
  };
}
