import { createHash } from 'node:crypto';
import type { AwsAnswer, AwsRequest } from './aws-server.js';

interface SimulatedStack {
  readonly id: string;
  readonly name: string;
  status: string;
  /** The number of reads until the operation in progress ends. */
  looks: number;
  parameters: Record<string, string>;
  tags: Record<string, string>;
  template: string;
  readonly events: { readonly status: string; readonly logicalId: string }[];
}

type Wish = Pick<SimulatedStack, 'parameters' | 'tags' | 'template'>;

/** The code of a function and its hash. The placeholder has only the hash. */
interface SimulatedFunction {
  readonly sha256: string;
  readonly bytes: Uint8Array;
}

const PLACEHOLDER: SimulatedFunction = { sha256: 'placeholder', bytes: new Uint8Array() };

interface SimulatedChangeSet extends Wish {
  readonly stack: SimulatedStack;
  readonly type: string;
  readonly imported: readonly string[];
}

export interface SimulatedAws {
  answer(request: AwsRequest): Promise<AwsAnswer>;
  /** The hash of the code of each function. */
  readonly functions: ReadonlyMap<string, string>;
  readonly stacks: ReadonlyMap<string, { readonly status: string }>;
  readonly changeSets: ReadonlyMap<string, unknown>;
  /** Logical ids whose next update fails, so that the stack is rolled back. */
  readonly failing: Set<string>;
  /** Adds a stack of another product, with its own template. */
  addStack(name: string, wish: Wish): void;
}

interface TemplateText {
  readonly Resources: Record<
    string,
    {
      readonly Type: string;
      readonly Condition?: string;
      readonly DeletionPolicy?: string;
      readonly Properties?: { readonly Code?: unknown };
    }
  >;
  readonly Outputs?: object;
  readonly Parameters: Record<string, { readonly Default: unknown }>;
}

const AT = '2027-01-15T10:00:00.000Z';
const LOOKS = 2;
const NO_CHANGES =
  "The submitted information didn't contain changes. Submit different information to create a change set.";

/**
 * A simulation of the parts of CloudFormation and Lambda that a deployment uses. Stacks continue while clients are
 * killed.
 */
export function simulatedAws(makeTable: (name: string) => Promise<void>): SimulatedAws {
  const stacks = new Map<string, SimulatedStack>();
  const changeSets = new Map<string, SimulatedChangeSet>();
  const functions = new Map<string, SimulatedFunction>();
  const failing = new Set<string>();
  /** The state to roll back to, while an update is in progress. */
  const previous = new Map<SimulatedStack, Wish>();

  const find = (nameOrId = ''): SimulatedStack | undefined =>
    stacks.get(nameOrId) ?? [...stacks.values()].find(({ id }) => id === nameOrId);

  const say = (stack: SimulatedStack, status: string, logicalId = stack.name): void => {
    stack.events.unshift({ status, logicalId });
    if (logicalId === stack.name) stack.status = status;
  };

  /** Each request advances the operations in progress. */
  const goOn = async (stack: SimulatedStack): Promise<void> => {
    if (!stack.status.endsWith('_IN_PROGRESS') || stack.status === 'REVIEW_IN_PROGRESS') return;
    stack.looks -= 1;
    if (stack.looks > 0) return;
    const done = stack.status.replace('_IN_PROGRESS', '_COMPLETE');
    if (done === 'CREATE_COMPLETE') await makeTable(stack.parameters['TableName'] ?? '');
    const before = previous.get(stack);
    for (const [logicalId, physicalId] of resourcesOf(stack)) {
      say(stack, done, logicalId);
      if (!logicalId.endsWith('Function')) continue;
      const isNew = !functions.has(physicalId);
      // CloudFormation only knows the code of a function from the template.
      if (isNew || codeOf(before?.template, logicalId) !== codeOf(stack.template, logicalId)) {
        functions.set(physicalId, PLACEHOLDER);
      }
    }
    if (before === undefined || failing.size === 0) return say(stack, done);
    for (const logicalId of failing) say(stack, 'UPDATE_FAILED', logicalId);
    failing.clear();
    Object.assign(stack, before);
    say(stack, 'UPDATE_ROLLBACK_COMPLETE');
  };

  const actions: Record<string, (params: AwsRequest['params'], endpoint: string) => Promise<AwsAnswer> | AwsAnswer> = {
    async DescribeStacks({ StackName }) {
      if (StackName === undefined) return { result: { Stacks: [...stacks.values()].map(stackMember) } };
      const stack = find(StackName);
      if (stack !== undefined) await goOn(stack);
      const isGone = stack === undefined || (stack.status === 'DELETE_COMPLETE' && StackName === stack.name);
      if (isGone) return { error: 'ValidationError', message: `Stack with id ${StackName} does not exist` };
      return { result: { Stacks: [stackMember(stack)] } };
    },
    CreateChangeSet(params) {
      const {
        StackName: name = '',
        ChangeSetName = '',
        ChangeSetType: type = '',
        TemplateBody: template = '',
      } = params;
      const imported = importedIn(params);
      const refusal = type === 'IMPORT' ? refusalOf(template, imported) : null;
      if (refusal !== null) return { error: 'ValidationError', message: refusal };
      let stack = find(name);
      if (stack === undefined || stack.status === 'DELETE_COMPLETE') {
        const fresh = { status: '', looks: 0, parameters: {}, tags: {}, template: '{"Resources":{}}', events: [] };
        stack = { id: `arn:aws:cloudformation:eu-west-1:1:stack/${name}/${ChangeSetName}`, name, ...fresh };
        stacks.set(name, stack);
        say(stack, 'REVIEW_IN_PROGRESS');
      }
      const { parameters: kept } = stack;
      const parameters = { ...defaultsOf(template), ...listOf(params, 'Parameters', 'ParameterKey', 'ParameterValue') };
      for (const key of Object.keys(listOf(params, 'Parameters', 'ParameterKey', 'UsePreviousValue'))) {
        parameters[key] = kept[key] ?? '';
      }
      const id = `arn:aws:cloudformation:eu-west-1:1:changeSet/${ChangeSetName}`;
      changeSets.set(id, { stack, type, template, parameters, imported, tags: listOf(params, 'Tags', 'Key', 'Value') });
      return { result: { Id: id, StackId: stack.id } };
    },
    DescribeChangeSet({ ChangeSetName = '' }) {
      const { stack, ...wish } = changeSets.get(ChangeSetName) as SimulatedChangeSet;
      if (wish.type === 'UPDATE' && isSame(wish, stack))
        return { result: { Status: 'FAILED', StatusReason: NO_CHANGES } };
      const there = new Set(wish.type === 'UPDATE' ? resourcesOf(stack).map(([id]) => id) : []);
      const Scope = hasOtherTagsOnly(wish, stack) ? ['Tags'] : ['Properties'];
      const Changes = resourcesOf({ ...wish, name: stack.name }).map(([LogicalResourceId, , ResourceType]) => ({
        Type: 'Resource',
        ResourceChange: there.has(LogicalResourceId)
          ? { Action: 'Modify', LogicalResourceId, ResourceType, Replacement: 'False', Scope }
          : { Action: wish.type === 'IMPORT' ? 'Import' : 'Add', LogicalResourceId, ResourceType },
      }));
      return { result: { Status: 'CREATE_COMPLETE', ExecutionStatus: 'AVAILABLE', Changes } };
    },
    ExecuteChangeSet({ ChangeSetName = '' }) {
      const { stack, type, imported: _, ...wish } = changeSets.get(ChangeSetName) as SimulatedChangeSet;
      const { template, parameters, tags } = stack;
      if (type === 'UPDATE') previous.set(stack, { template, parameters, tags });
      else previous.delete(stack);
      Object.assign(stack, wish, { looks: LOOKS });
      // CloudFormation deletes every change set of the stack.
      for (const [id, one] of changeSets) if (one.stack === stack) changeSets.delete(id);
      say(stack, `${type}_IN_PROGRESS`);
      return { result: {} };
    },
    DeleteChangeSet({ ChangeSetName = '' }) {
      changeSets.delete(ChangeSetName);
      return { result: {} };
    },
    DeleteStack({ StackName }) {
      const stack = find(StackName);
      if (stack === undefined) return { result: {} };
      if (stack.status === 'REVIEW_IN_PROGRESS') {
        stacks.delete(stack.name);
        return { result: {} };
      }
      stack.looks = LOOKS;
      say(stack, 'DELETE_IN_PROGRESS');
      return { result: {} };
    },
    DescribeStackEvents({ StackName }) {
      const { events = [], id = '', name = '' }: Partial<SimulatedStack> = find(StackName) ?? {};
      const StackEvents = events.map(({ status, logicalId }, at) => ({
        EventId: `${name}-${events.length - at}`,
        StackId: id,
        StackName: name,
        LogicalResourceId: logicalId,
        PhysicalResourceId: logicalId === name ? id : `${name}-${logicalId}`,
        ResourceType: logicalId === name ? 'AWS::CloudFormation::Stack' : 'AWS::Test::Any',
        ResourceStatus: status,
        Timestamp: AT,
      }));
      return { result: { StackEvents } };
    },
    ListStackResources({ StackName }) {
      const stack = find(StackName);
      const StackResourceSummaries = (stack === undefined ? [] : resourcesOf(stack)).map(
        ([LogicalResourceId, PhysicalResourceId, ResourceType]) => ({
          LogicalResourceId,
          PhysicalResourceId,
          ResourceType,
          ResourceStatus: 'CREATE_COMPLETE',
          LastUpdatedTimestamp: AT,
        }),
      );
      return { result: { StackResourceSummaries } };
    },
    GetTemplate: ({ StackName }) => ({ result: { TemplateBody: find(StackName)?.template } }),
    GetFunctionConfiguration({ FunctionName = '' }) {
      const found = functions.get(FunctionName);
      if (found === undefined) return NO_FUNCTION;
      return { result: { FunctionName, CodeSha256: found.sha256, State: 'Active', LastUpdateStatus: 'Successful' } };
    },
    GetFunction({ FunctionName = '' }, endpoint) {
      const found = functions.get(FunctionName);
      if (found === undefined) return NO_FUNCTION;
      const Code = { Location: `${endpoint}/code/${FunctionName}` };
      return { result: { Configuration: { FunctionName, CodeSha256: found.sha256 }, Code } };
    },
    DownloadCode: ({ FunctionName = '' }) => ({ bytes: functions.get(FunctionName)?.bytes ?? new Uint8Array() }),
    UpdateFunctionCode({ FunctionName = '', ZipFile = '' }) {
      const bytes = Buffer.from(ZipFile, 'base64');
      functions.set(FunctionName, { sha256: createHash('sha256').update(bytes).digest('base64'), bytes });
      return { result: { FunctionName } };
    },
  };

  return {
    stacks,
    changeSets,
    failing,
    get functions() {
      return new Map([...functions].map(([name, { sha256 }]) => [name, sha256]));
    },
    addStack(name, wish) {
      const id = `arn:aws:cloudformation:eu-west-1:1:stack/${name}/by-hand`;
      const stack = { id, name, status: '', looks: 0, events: [], ...wish };
      stacks.set(name, stack);
      for (const [logicalId, physicalId] of resourcesOf(stack)) {
        if (logicalId.endsWith('Function')) functions.set(physicalId, PLACEHOLDER);
      }
      say(stack, 'CREATE_COMPLETE');
    },
    answer: async ({ action, params, endpoint }) =>
      (await actions[action]?.(params, endpoint)) ?? { error: 'InvalidAction', message: `${action} is not simulated` },
  };
}

const NO_FUNCTION: AwsAnswer = { error: 'ResourceNotFoundException', message: 'no such function', status: 404 };

function codeOf(template: string | undefined, logicalId: string): string {
  const { Resources = {} } = JSON.parse(template ?? '{}') as Partial<TemplateText>;
  return JSON.stringify(Resources[logicalId]?.Properties?.Code ?? null);
}

/** The logical ids in `ResourcesToImport`. */
function importedIn(params: AwsRequest['params']): readonly string[] {
  const ids: string[] = [];
  for (let at = 1; `ResourcesToImport.member.${at}.LogicalResourceId` in params; at += 1) {
    ids.push(params[`ResourcesToImport.member.${at}.LogicalResourceId`] ?? '');
  }
  return ids;
}

/** The reasons for which CloudFormation refuses an import, by its guide. */
function refusalOf(template: string, imported: readonly string[]): string | null {
  const { Resources, Outputs } = JSON.parse(template) as TemplateText;
  if (Outputs !== undefined) return 'As part of the import operation, you cannot modify or add [Outputs]';
  const others = Object.keys(Resources).filter((id) => !imported.includes(id));
  if (others.length > 0) return `Resources [${others.join(', ')}] are not imported, and cannot be made by an import`;
  const loose = imported.filter((id) => Resources[id]?.DeletionPolicy === undefined);
  return loose.length === 0 ? null : `Resources to import [${loose.join(', ')}] must have DeletionPolicy`;
}

function hasOtherTagsOnly(a: Wish, b: Wish): boolean {
  return isSame({ ...a, tags: {} }, { ...b, tags: {} });
}

/** Logical id, physical id and type of the resources without a condition. */
function resourcesOf({ name, template, parameters }: Wish & { readonly name: string }) {
  const { Resources } = JSON.parse(template) as TemplateText;
  return Object.entries(Resources)
    .filter(([, { Condition }]) => Condition === undefined)
    .map(([id, { Type }]) => [id, id === 'Table' ? (parameters['TableName'] ?? '') : `${name}-${id}`, Type] as const);
}

function defaultsOf(template: string): Record<string, string> {
  const { Parameters = {} } = JSON.parse(template) as Partial<TemplateText>;
  return Object.fromEntries(Object.entries(Parameters).map(([name, { Default }]) => [name, String(Default)]));
}

/** `Tags.member.1.Key`, `Tags.member.1.Value`, ... Items without either field are left out. */
function listOf(params: AwsRequest['params'], list: string, key: string, value: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (let at = 1; `${list}.member.${at}.${key}` in params; at += 1) {
    const item = params[`${list}.member.${at}.${value}`];
    if (item !== undefined) found[params[`${list}.member.${at}.${key}`] ?? ''] = item;
  }
  return found;
}

function isSame(a: Wish, b: Wish): boolean {
  const sorted = (map: Record<string, string>) => JSON.stringify(map, Object.keys(map).toSorted());
  return (
    a.template === b.template && sorted(a.parameters) === sorted(b.parameters) && sorted(a.tags) === sorted(b.tags)
  );
}

function stackMember({ id, name, status, parameters, tags, template }: SimulatedStack): object {
  const Outputs =
    status === 'REVIEW_IN_PROGRESS' ? [] : Object.keys((JSON.parse(template) as { Outputs?: object }).Outputs ?? {});
  return {
    StackId: id,
    StackName: name,
    StackStatus: status,
    CreationTime: AT,
    Parameters: Object.entries(parameters).map(([ParameterKey, ParameterValue]) => ({ ParameterKey, ParameterValue })),
    Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })),
    Outputs: Outputs.map((OutputKey) => ({ OutputKey, OutputValue: `${name}-${OutputKey}` })),
  };
}
