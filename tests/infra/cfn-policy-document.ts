import { checkLeaf, type Names } from '../support/aws/cfn-intrinsics.js';

type Fields = Readonly<Record<string, unknown>>;

const OF_STATEMENTS = ['Sid', 'Effect', 'Principal', 'Action', 'Resource', 'Condition'];
const OF_CONDITIONS: Readonly<Record<string, readonly string[]>> = {
  ArnLike: ['aws:SourceArn'],
  Bool: ['aws:SecureTransport'],
  Null: ['dynamodb:LeadingKeys'],
  'ForAllValues:StringLike': ['dynamodb:LeadingKeys'],
  'ForAllValues:StringNotLike': ['dynamodb:LeadingKeys'],
};
const OF_PRINCIPALS = ['AWS', 'Service'];

/** CloudFormation's specification allows any JSON as a policy; IAM does not. */
export function checkPolicyDocument(place: string, document: unknown, names: Names): string[] {
  const { Version, Statement, ...more } = document as Fields;
  if (Version !== '2012-10-17' || !Array.isArray(Statement) || Object.keys(more).length > 0) {
    return [`${place}: expected a policy of version 2012-10-17, got ${Object.keys(document as Fields).join(', ')}`];
  }
  return (Statement as readonly Fields[]).flatMap((statement, at) =>
    checkStatement(`${place}.Statement[${at}]`, statement, names),
  );
}

function checkStatement(place: string, statement: Fields, names: Names): string[] {
  const { Effect, Action, Resource, Principal, Condition = {} } = statement;
  const problems = strange(place, Object.keys(statement), OF_STATEMENTS);
  if (Effect !== 'Allow' && Effect !== 'Deny') problems.push(`${place}: its effect is ${String(Effect)}`);
  const actions = [Action].flat().map(String);
  const odd = actions.filter(
    (action) => !/^[a-z0-9]+:[A-Za-z]+$|^(?:s3|sqs|kms):\*$|^kms:GenerateDataKey\*$/.test(action),
  );
  problems.push(...odd.map((action) => `${place}: there is no action ${action}`));
  if (Resource === undefined && Principal === undefined)
    problems.push(`${place}: it names neither resource nor principal`);
  const leaves: unknown[] = [Resource ?? []].flat();
  if (typeof Principal === 'object' && Principal !== null) {
    problems.push(...strange(place, Object.keys(Principal), OF_PRINCIPALS));
    leaves.push(...Object.values(Principal));
  }
  for (const [operator, keys] of Object.entries(Condition as Readonly<Record<string, Fields>>)) {
    const known = OF_CONDITIONS[operator];
    problems.push(...strange(place, known === undefined ? [operator] : Object.keys(keys), known ?? []));
    leaves.push(...Object.values(keys).flat());
  }
  return [...problems, ...leaves.flatMap((leaf) => checkLeaf(place, leaf, names))];
}

function strange(place: string, found: readonly string[], known: readonly string[]): string[] {
  return found.flatMap((name) => (known.includes(name) ? [] : [`${place}: there is no ${name}`]));
}
