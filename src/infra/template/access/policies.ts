import { REGISTRY, VERSION_KEY } from '../../../backends/dynamodb/table/keys.js';
import { either, type Resource, type Resources, substitute, type Value } from '../intrinsics.js';
import { NAMESPACE_TAG, PARAMETERS, POLICIES } from '../names.js';
import { CONDITIONS } from '../parameters.js';
import { allow, type Grant, policyDocument } from './statements.js';

const READ = ['BatchGetItem', 'GetItem'];
const WRITE_BUCKETS = ['DeleteItem', 'PutItem', 'UpdateItem'];
/** A transaction has no IAM action; each of its parts needs its action. */
const WRITE = [...WRITE_BUCKETS, 'ConditionCheckItem'];

/**
 * The permissions of each policy. `tests/infra/policies.test.ts` compares them with the requests that the code sends.
 */
const GRANTS: Readonly<Record<keyof typeof POLICIES, readonly Grant[]>> = {
  acquire: [
    { sid: 'Read', actions: READ, on: 'table' },
    { sid: 'WriteBuckets', actions: WRITE_BUCKETS, on: 'table', keys: ['*/BUCKET#*'] },
    { sid: 'WriteReceipts', actions: ['PutItem'], on: 'table', keys: ['*/RECEIPT#*'] },
  ],
  readOnly: [
    { sid: 'Read', actions: [...READ, 'Query'], on: 'table' },
    { sid: 'List', actions: ['Query'], on: 'indexes' },
  ],
  full: [
    {
      sid: 'ReadAndWrite',
      actions: [...READ, 'Query', ...WRITE, 'BatchWriteItem', 'DescribeTable'],
      on: 'table',
    },
    { sid: 'List', actions: ['Query'], on: 'indexes' },
    { sid: 'ReadStream', actions: ['DescribeStream', 'GetRecords', 'GetShardIterator'], on: 'stream' },
  ],
  namespaceAcquire: [
    own({ sid: 'Read', actions: READ, on: 'table' }),
    registry(),
    own({ sid: 'WriteBuckets', actions: WRITE_BUCKETS, on: 'table' }, 'BUCKET#*'),
    own({ sid: 'WriteReceipts', actions: ['PutItem'], on: 'table' }, 'RECEIPT#*'),
  ],
  namespaceReadOnly: [
    own({ sid: 'Read', actions: [...READ, 'Query'], on: 'table' }),
    own({ sid: 'List', actions: ['Query'], on: 'indexes' }),
    registry(),
  ],
  namespaceFull: [
    own({ sid: 'ReadAndWrite', actions: [...READ, 'Query', ...WRITE], on: 'table' }),
    own({ sid: 'List', actions: ['Query'], on: 'indexes' }),
    registry(),
  ],
};

const DESCRIPTIONS: Readonly<Record<keyof typeof POLICIES, string>> = {
  acquire: 'Headgate: acquire, charge, and all that a lease can do, in every namespace',
  readOnly: 'Headgate: look at everything',
  full: 'Headgate: everything that the library and the command line do with the table',
  namespaceAcquire: 'Headgate: acquire, charge, and all that a lease can do, in one namespace',
  namespaceReadOnly: 'Headgate: look at everything of one namespace',
  namespaceFull: 'Headgate: everything in one namespace',
};

export function policies(): Resources {
  const names = Object.keys(POLICIES) as (keyof typeof POLICIES)[];
  return Object.fromEntries(names.map((name) => [POLICIES[name], managedPolicy(name)]));
}

function managedPolicy(name: keyof typeof POLICIES): Resource {
  return {
    Type: 'AWS::IAM::ManagedPolicy',
    Properties: { Description: DESCRIPTIONS[name], PolicyDocument: policyDocument(GRANTS[name].map(allow)) },
  };
}

/** Limits a grant to the tenant's namespace. A tag that names the registry grants nothing. */
function own(grant: Grant, rest = '*'): Grant {
  const byTag = `\${aws:PrincipalTag/${NAMESPACE_TAG}}/${rest}`;
  const key: Value = either(CONDITIONS.hasNamespaceId, substitute(`\${${PARAMETERS.namespaceId}}/${rest}`), byTag);
  return { ...grant, keys: [key], notKeys: [`${REGISTRY}/*`] };
}

/**
 * Opening a namespace reads the version record and the namespace's status. Without `Query`, a tenant cannot list other
 * tenants.
 */
function registry(): Grant {
  return { sid: 'ReadRegistry', actions: ['GetItem'], on: 'table', keys: [VERSION_KEY.PK] };
}
