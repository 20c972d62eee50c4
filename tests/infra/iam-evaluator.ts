import type { Authorization } from '../support/aws/iam-requests.js';

export interface Statement {
  readonly Effect: 'Allow' | 'Deny';
  readonly Action: string | readonly string[];
  readonly Resource: string | readonly string[];
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>;
}

export interface Policy {
  readonly Statement: readonly Statement[];
}

/** Tags of the caller. */
export type Tags = Readonly<Record<string, string>>;

/**
 * IAM's decision about one request by one policy: denied unless a statement allows it and no statement denies it.
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_evaluation-logic.html
 */
export function isAllowed({ Statement }: Policy, request: Authorization, tags: Tags = {}): boolean {
  const applying = Statement.filter((statement) => applies(statement, request, tags));
  return applying.some(({ Effect }) => Effect === 'Allow') && !applying.some(({ Effect }) => Effect === 'Deny');
}

function applies({ Action, Resource, Condition = {} }: Statement, request: Authorization, tags: Tags): boolean {
  return (
    [Action].flat().some((pattern) => isLike(request.action, pattern)) &&
    [Resource].flat().some((pattern) => isLike(request.resource, pattern)) &&
    Object.entries(Condition).every(([operator, keys]) =>
      Object.entries(keys).every(([key, wanted]) =>
        holds(operator, valuesOf(key, request, tags), [wanted].flat(), tags),
      ),
    )
  );
}

/** The values of a condition key in the request. */
function valuesOf(key: string, { leadingKeys }: Authorization, tags: Tags): readonly string[] {
  if (key === 'dynamodb:LeadingKeys') return leadingKeys;
  if (!key.startsWith('aws:PrincipalTag/')) throw new TypeError(`${key} is no key that the evaluator knows`);
  const tag = tags[key.slice('aws:PrincipalTag/'.length)];
  return tag === undefined ? [] : [tag];
}

function holds(operator: string, values: readonly string[], wanted: readonly string[], tags: Tags): boolean {
  if (operator === 'Null') return (values.length === 0) === (wanted[0] === 'true');
  const [, set, compare = ''] = /^(ForAllValues:|ForAnyValue:)?(.+)$/.exec(operator) ?? [];
  const matches = (value: string): boolean => comparison(compare)(value, wanted, tags);
  // IAM defines ForAllValues as true without values, so a policy needs a guard against it.
  if (set === 'ForAllValues:') return values.every(matches);
  return values.some(matches);
}

type Comparison = (value: string, wanted: readonly string[], tags: Tags) => boolean;

function comparison(operator: string): Comparison {
  switch (operator) {
    case 'StringEquals':
      return (value, wanted, tags) => wanted.some((one) => fillIn(one, tags, (tag) => tag) === value);
    case 'StringLike':
      return (value, wanted, tags) =>
        wanted.some((one) =>
          isLike(
            value,
            fillIn(one, tags, (tag) => tag.replaceAll(/[*?]/g, '${$&}')),
          ),
        );
    case 'StringNotLike':
      return (value, wanted, tags) => !comparison('StringLike')(value, wanted, tags);
    default:
      throw new TypeError(`${operator} is no operator that the evaluator knows`);
  }
}

/** A variable that has no value matches nothing. */
function fillIn(pattern: string, tags: Tags, quote: (tag: string) => string): string | null {
  let isComplete = true;
  const text = pattern.replaceAll(/\$\{aws:PrincipalTag\/([^}]+)\}/g, (_, name: string) => {
    const tag = tags[name];
    isComplete &&= tag !== undefined;
    return quote(tag ?? '');
  });
  return isComplete ? text : null;
}

/** `*` and `?` are wildcards; `${*}` and `${?}` are the characters. */
function isLike(value: string, pattern: string | null): boolean {
  if (pattern === null) return false;
  const source = pattern.replaceAll(/\$\{[*?]\}|[*?]|[\\^$.|+()[\]{}]/g, (part) => {
    if (part === '*') return '.*';
    if (part === '?') return '.';
    return part.startsWith('${') ? `\\${part.charAt(2)}` : `\\${part}`;
  });
  return new RegExp(`^${source}$`, 's').test(value);
}
