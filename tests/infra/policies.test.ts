import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildTemplate } from '../../src/infra/template.js';
import { NAMESPACE_TAG, POLICIES } from '../../src/infra/template/names.js';
import { type DynamoWorld, ENGINE, startWorld } from '../support/dynamodb/world.js';
import { isAllowed, type Policy, type Statement } from './iam-evaluator.js';
import { type Authorization, authorizationsOf, STREAM_ARN, TABLE_ARN } from '../support/aws/iam-requests.js';
import { type Flow, FUNCTION_FLOWS, LOOKS_BY_COMMAND, recordFlows } from './policy-flows.js';
import { resolveValue } from '../support/aws/resolve-template.js';

const TEMPLATE = buildTemplate();
const GIVEN = { 'Table.Arn': TABLE_ARN, 'Table.StreamArn': STREAM_ARN };
const WRITES = ['PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem'].map((action) => `dynamodb:${action}`);

const ACQUIRING = [
  '`open`, `ping`',
  '`acquire`, `tryAcquire`, `run`, and all that a lease can do',
  'the same, once a bucket is busy enough to split',
  '`charge`, `credit`',
  '`status`, `available`, `timeUntilAvailable`, `peek`',
  '`config.resolve`',
  '`leases.resume`, and all that the lease can do then',
];
const isOfRegistry = (name: string): boolean => name.startsWith('`namespaces.');
const CHANGING = /set|apply|create|update|delete|reset|register|recover|purge|acquire|charge|busy|resume|release/;

function policyOf(name: keyof typeof POLICIES, namespaceId = ''): Policy {
  const { PolicyDocument } = TEMPLATE.Resources[POLICIES[name]]?.Properties ?? {};
  return resolveValue(TEMPLATE, PolicyDocument, { ...GIVEN, NamespaceId: namespaceId }) as Policy;
}

/** The permissions of a role on the table. Logs, archive and the polling of the stream are left out. */
function rolePolicyOf(role: string): Policy {
  const [policy] = TEMPLATE.Resources[role]!.Properties['Policies'] as unknown as { readonly PolicyDocument: Policy }[];
  const ofTable = (policy?.PolicyDocument.Statement ?? []).filter(({ Action }) =>
    [Action].flat()[0]?.startsWith('dynamodb:'),
  );
  return resolveValue(TEMPLATE, { Statement: ofTable }, GIVEN) as Policy;
}

/** `dynamodb:Query .../index/GSI1`, for every action and resource of a policy. */
function permitted({ Statement }: Policy): string[] {
  const pairs = Statement.flatMap(({ Action, Resource }) =>
    [Action].flat().flatMap((action) => [Resource].flat().map((resource) => `${action} ${resource}`)),
  );
  return [...new Set(pairs)].toSorted();
}

function needed(flows: readonly Flow[]): string[] {
  const asked = flows.flatMap(({ requests }) => requests).flatMap(authorizationsOf);
  return [...new Set(asked.map(({ action, resource }) => `${action} ${resource}`))].toSorted();
}

describe.skipIf(ENGINE.missing)(`the policies of the template${ENGINE.note}`, () => {
  let world: DynamoWorld;
  let flows: readonly Flow[] = [];
  const pick = (wanted: (name: string) => boolean) => flows.filter(({ name }) => wanted(name));
  const asks = ({ requests }: Flow): Authorization[] => requests.flatMap(authorizationsOf);

  beforeAll(async () => {
    world = await startWorld({ record: true });
    flows = await recordFlows(world);
  }, 60_000);
  afterAll(async () => world?.[Symbol.asyncDispose]());

  const acquiring = (name: string): boolean => ACQUIRING.includes(name);
  const looking = (name: string): boolean =>
    name === LOOKS_BY_COMMAND || (name.startsWith('`') && !name.startsWith('`headgate') && !CHANGING.test(name));
  const ofTenants = (name: string): boolean => /^`(?!headgate)|^the same/.test(name) && !isOfRegistry(name);

  test.each<[name: keyof typeof POLICIES, wanted: (name: string) => boolean]>([
    ['acquire', acquiring],
    ['readOnly', looking],
    ['full', () => true],
    ['namespaceAcquire', acquiring],
    ['namespaceReadOnly', (name) => looking(name) && ofTenants(name)],
    ['namespaceFull', ofTenants],
  ])('the policy %s allows what its flows need, and no more', (name, wanted) => {
    expect(pick(wanted).length).toBeGreaterThan(4);
    expect(permitted(policyOf(name))).toEqual(needed(pick(wanted)));
    for (const id of ['', 'tenant-id-1']) {
      expect(permitted(policyOf(name, id))).toEqual(permitted(policyOf(name)));
    }
  });

  test.each(['acquire', 'readOnly', 'full'] as const)('the policy %s allows all its flows', (name) => {
    const wanted = { acquire: acquiring, readOnly: looking, full: () => true }[name];
    expect(pick(wanted).length).toBeGreaterThan(4);
    for (const flow of pick(wanted)) {
      expect(
        asks(flow).filter((ask) => !isAllowed(policyOf(name), ask)),
        flow.name,
      ).toEqual([]);
    }
  });

  test('the functions may do what they need, and no more', () => {
    const polled = ['DescribeStream', 'GetRecords', 'GetShardIterator'].map(
      (action) => `dynamodb:${action} ${STREAM_ARN}`,
    );
    polled.push('dynamodb:ListStreams *');
    const ofFlow = (name: string) => needed(pick((one) => one === name));
    expect(permitted(rolePolicyOf('StreamRole'))).toEqual([...ofFlow(FUNCTION_FLOWS.stream), ...polled].toSorted());
    expect(permitted(rolePolicyOf('ReconcilerRole'))).toEqual(ofFlow(FUNCTION_FLOWS.reconciler));
  });

  test('the acquire policies allow no change of config, entities or registry', () => {
    const changes = pick((name) => /config\.set|entities\.|namespaces\.(?!list)|apply/.test(name)).flatMap(asks);
    const writes = changes.filter(
      ({ action, leadingKeys: [key = ''] }) => WRITES.includes(action) && !/\/(?:BUCKET|RECEIPT)#/.test(key),
    );
    expect(writes.length).toBeGreaterThan(20);
    expect(writes.filter((ask) => isAllowed(policyOf('acquire'), ask))).toEqual([]);
  });

  describe.each<[how: string, policy: (name: keyof typeof POLICIES, ns: string) => Policy, tag: boolean]>([
    ['by the tag of the caller', (name) => policyOf(name), true],
    ['by a namespace id', (name, ns) => policyOf(name, ns), false],
  ])('policies scoped %s', (_, policy, byTag) => {
    const allows = (name: keyof typeof POLICIES, ns: string, ask: Authorization): boolean =>
      isAllowed(policy(name, ns), ask, byTag ? { [NAMESPACE_TAG]: ns } : {});

    test.each<[name: keyof typeof POLICIES, wanted: (name: string) => boolean]>([
      ['namespaceAcquire', acquiring],
      ['namespaceReadOnly', (name) => looking(name) && ofTenants(name)],
      ['namespaceFull', ofTenants],
    ])('the policy %s allows a tenant all its flows', (name, wanted) => {
      expect(pick(wanted).length).toBeGreaterThan(4);
      for (const flow of pick(wanted)) {
        expect(
          asks(flow).filter((ask) => !allows(name, flow.ns, ask)),
          flow.name,
        ).toEqual([]);
      }
    });

    test.each(['namespaceAcquire', 'namespaceReadOnly', 'namespaceFull'] as const)(
      'the policy %s allows no request to another namespace',
      (name) => {
        let tried = 0;
        for (const flow of flows) {
          const foreign = asks(flow).filter(({ leadingKeys }) =>
            leadingKeys.some((key) => key.startsWith(`${flow.ns}/`)),
          );
          tried += foreign.length;
          expect(
            foreign.filter((ask) => allows(name, 'other-id-01', ask)),
            flow.name,
          ).toEqual([]);
        }
        expect(tried).toBeGreaterThan(50);
      },
    );

    test.each(['namespaceAcquire', 'namespaceReadOnly', 'namespaceFull'] as const)(
      'the policy %s allows neither writing nor listing the registry',
      (name) => {
        let refused = 0;
        for (const flow of pick(isOfRegistry)) {
          const ofRegistry = asks(flow).filter(({ leadingKeys }) => leadingKeys.some((key) => key.startsWith('_/')));
          const harmful = ofRegistry.filter(({ action }) => action !== 'dynamodb:GetItem');
          refused += harmful.length;
          expect(
            harmful.filter((ask) => allows(name, flow.ns, ask)),
            flow.name,
          ).toEqual([]);
        }
        expect(refused).toBeGreaterThan(5);
      },
    );

    test('a request without keys is denied, by the guard alone', () => {
      const keyless: Authorization = { action: 'dynamodb:Query', resource: TABLE_ARN, leadingKeys: [] };
      expect(allows('namespaceFull', 'tenant-id-1', keyless)).toBe(false);
      const unguarded = policy('namespaceFull', 'tenant-id-1').Statement.map(withoutNull);
      expect(isAllowed({ Statement: unguarded }, keyless, { [NAMESPACE_TAG]: 'tenant-id-1' })).toBe(true);
    });
  });

  test('a tag that is the registry, a wildcard or empty allows nothing', () => {
    const write: Authorization = { action: 'dynamodb:PutItem', resource: TABLE_ARN, leadingKeys: ['_/SYSTEM#'] };
    for (const tags of [{ [NAMESPACE_TAG]: '_' }, { [NAMESPACE_TAG]: '*' }, {}]) {
      expect(isAllowed(policyOf('namespaceFull'), write, tags)).toBe(false);
    }
    const own = { ...write, leadingKeys: ['tenant-id-1/SYSTEM#'] };
    expect(isAllowed(policyOf('namespaceFull'), own, { [NAMESPACE_TAG]: 'tenant-id-1' })).toBe(true);
    expect(isAllowed(policyOf('namespaceFull'), own, {})).toBe(false);
  });
});

test('no policy has a wildcard among its actions, and every resource is the table, an index of it or its stream', () => {
  for (const name of Object.keys(POLICIES) as (keyof typeof POLICIES)[]) {
    for (const { Action, Resource } of policyOf(name).Statement) {
      expect([Action].flat().join()).not.toContain('*');
      for (const resource of [Resource].flat()) {
        expect([TABLE_ARN, STREAM_ARN, ...[1, 2, 3, 4].map((at) => `${TABLE_ARN}/index/GSI${at}`)]).toContain(resource);
      }
    }
  }
});

function withoutNull({ Condition = {}, ...statement }: Statement): Statement {
  const { Null: _, ...rest } = Condition;
  return { ...statement, Condition: rest };
}
