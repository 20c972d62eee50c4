import type * as Sdk from '@aws-sdk/client-cloudformation';
import { type AwsOptions, clientConfig, lazyClient, serviceErrorName } from './aws-client.js';
import { saysNothingToDo } from '../change-set/change-set.js';
import { retainedIn } from './retained-resources.js';
import { isStart } from '../status/stack-events.js';
import type {
  ResourceChange,
  ChangeSet,
  ChangeSetRequest,
  CloudFormation,
  ImportedResource,
  Stack,
  StackEvent,
} from '../stack-tools.js';

const PEER = '@aws-sdk/client-cloudformation';

/** CloudFormation through the AWS SDK. The SDK is loaded by the first call. */
export function sdkCloudFormation(options: AwsOptions): CloudFormation {
  const { send, close } = lazyClient(options, {
    peer: PEER,
    load: async () => import('@aws-sdk/client-cloudformation'),
    make: (sdk) => new sdk.CloudFormationClient(clientConfig(options)),
  });
  const describe = async (input: Sdk.DescribeStacksInput) =>
    send('CloudFormation DescribeStacks', async ({ sdk, client }, abortSignal) =>
      client.send(new sdk.DescribeStacksCommand(input), { abortSignal }),
    );

  return {
    async describeStack(nameOrId) {
      try {
        const [stack] = (await describe({ StackName: nameOrId })).Stacks ?? [];
        return stack === undefined ? null : stackOf(stack);
      } catch (error) {
        // CloudFormation has no specific error for a missing stack.
        if (serviceErrorName(error) === 'ValidationError' && / does not exist/.test(String(error))) return null;
        throw error;
      }
    },
    async *listStacks() {
      for await (const page of pagesOf(describe)) yield* (page.Stacks ?? []).map(stackOf);
    },
    async readEvents(nameOrId) {
      const events: StackEvent[] = [];
      const read = async (next: NextPage) =>
        send('CloudFormation DescribeStackEvents', async ({ sdk, client }, abortSignal) =>
          client.send(new sdk.DescribeStackEventsCommand({ StackName: nameOrId, ...next }), { abortSignal }),
        );
      for await (const page of pagesOf(read)) {
        events.push(...(page.StackEvents ?? []).map(eventOf));
        if (events.some(isStart)) break;
      }
      return events;
    },
    async readResources(name) {
      const found: [string, string][] = [];
      const read = async (next: NextPage) =>
        send('CloudFormation ListStackResources', async ({ sdk, client }, abortSignal) =>
          client.send(new sdk.ListStackResourcesCommand({ StackName: name, ...next }), { abortSignal }),
        );
      for await (const page of pagesOf(read)) {
        for (const { LogicalResourceId, PhysicalResourceId, ResourceStatus } of page.StackResourceSummaries ?? []) {
          const isDeleted = ResourceStatus === 'DELETE_COMPLETE';
          if (LogicalResourceId !== undefined && PhysicalResourceId !== undefined && !isDeleted) {
            found.push([LogicalResourceId, PhysicalResourceId]);
          }
        }
      }
      return Object.fromEntries(found);
    },
    async readRetained(name) {
      const input = { StackName: name, TemplateStage: 'Original' as const };
      const { TemplateBody } = await send('CloudFormation GetTemplate', async ({ sdk, client }, abortSignal) =>
        client.send(new sdk.GetTemplateCommand(input), { abortSignal }),
      );
      return retainedIn(TemplateBody ?? '');
    },
    async createChangeSet(request) {
      const { stack, name } = request;
      const input = changeSetInput(request);
      try {
        const { Id = name, StackId = stack } = await send(
          'CloudFormation CreateChangeSet',
          async ({ sdk, client }, abortSignal) => client.send(new sdk.CreateChangeSetCommand(input), { abortSignal }),
        );
        return { id: Id, stackId: StackId };
      } catch (error) {
        if (serviceErrorName(error) === 'ValidationError' && saysNothingToDo(String(error))) return null;
        throw error;
      }
    },
    async readChangeSet(id) {
      const changes: ResourceChange[] = [];
      let last: Sdk.DescribeChangeSetOutput = {};
      const read = async (next: NextPage) =>
        send('CloudFormation DescribeChangeSet', async ({ sdk, client }, abortSignal) =>
          client.send(new sdk.DescribeChangeSetCommand({ ChangeSetName: id, ...next }), { abortSignal }),
        );
      for await (last of pagesOf(read)) changes.push(...(last.Changes ?? []).map(changeOf));
      return changeSetOf(id, last, changes);
    },
    async deleteChangeSet(id) {
      await send('CloudFormation DeleteChangeSet', async ({ sdk, client }, abortSignal) =>
        client.send(new sdk.DeleteChangeSetCommand({ ChangeSetName: id }), { abortSignal }),
      );
    },
    async executeChangeSet(id, token) {
      const input = { ChangeSetName: id, ClientRequestToken: token };
      await send('CloudFormation ExecuteChangeSet', async ({ sdk, client }, abortSignal) =>
        client.send(new sdk.ExecuteChangeSetCommand(input), { abortSignal }),
      );
    },
    async deleteStack(nameOrId, token) {
      const input = { StackName: nameOrId, ClientRequestToken: token };
      await send('CloudFormation DeleteStack', async ({ sdk, client }, abortSignal) =>
        client.send(new sdk.DeleteStackCommand(input), { abortSignal }),
      );
    },
    region: async () => send('AWS', async ({ client }) => client.config.region()),
    close,
  };
}

interface NextPage {
  readonly NextToken?: string;
}

/** The pages of a list, until one has no token for the next. */
async function* pagesOf<P extends { readonly NextToken?: string | undefined }>(
  read: (next: NextPage) => Promise<P>,
): AsyncGenerator<P> {
  let token: string | undefined;
  do {
    const page = await read(token === undefined ? {} : { NextToken: token });
    yield page;
    token = page.NextToken;
  } while (token !== undefined);
}

function changeSetInput(request: ChangeSetRequest): Sdk.CreateChangeSetInput {
  const { stack, name, type, template, parameters, tags, imports } = request;
  return {
    StackName: stack,
    ChangeSetName: name,
    ChangeSetType: type,
    // Makes a repeated request return the same change set instead of failing on its name.
    ClientToken: name,
    TemplateBody: template,
    Capabilities: ['CAPABILITY_NAMED_IAM'],
    Parameters: parameters.map((parameter) => ({
      ParameterKey: parameter.name,
      ...('value' in parameter ? { ParameterValue: parameter.value } : { UsePreviousValue: true }),
    })),
    Tags: Object.entries(tags).map(([Key, Value]) => ({ Key, Value })),
    ...(imports === undefined ? {} : { ResourcesToImport: importsOf(imports) }),
  };
}

function stackOf(stack: Sdk.Stack): Stack {
  return {
    id: stack.StackId ?? '',
    name: stack.StackName ?? '',
    status: stack.StackStatus ?? '',
    reason: stack.StackStatusReason ?? null,
    createdAt: stack.CreationTime ?? null,
    updatedAt: stack.LastUpdatedTime ?? null,
    parameters: mapOf((stack.Parameters ?? []).map((one) => [one.ParameterKey, one.ParameterValue])),
    outputs: mapOf((stack.Outputs ?? []).map((one) => [one.OutputKey, one.OutputValue])),
    tags: mapOf((stack.Tags ?? []).map((one) => [one.Key, one.Value])),
  };
}

function importsOf(imports: Readonly<Record<string, ImportedResource>>): Sdk.ResourceToImport[] {
  return Object.entries(imports).map(([LogicalResourceId, { type, identifier }]) => ({
    LogicalResourceId,
    ResourceType: type,
    ResourceIdentifier: { ...identifier },
  }));
}

function mapOf(entries: readonly (readonly [string | undefined, string | undefined])[]): Record<string, string> {
  return Object.fromEntries(entries.map(([key = '', value = '']) => [key, value]));
}

function eventOf(event: Sdk.StackEvent): StackEvent {
  return {
    id: event.EventId ?? '',
    at: event.Timestamp ?? new Date(0),
    logicalId: event.LogicalResourceId ?? '',
    physicalId: event.PhysicalResourceId ?? null,
    type: event.ResourceType ?? '',
    status: event.ResourceStatus ?? '',
    reason: event.ResourceStatusReason ?? null,
    ofStack: event.PhysicalResourceId !== undefined && event.PhysicalResourceId === event.StackId,
  };
}

const REPLACEMENTS: Readonly<Record<string, ResourceChange['replacement']>> = {
  True: 'yes',
  False: 'no',
  Conditional: 'conditional',
};

function changeOf({ ResourceChange: change = {} }: Sdk.Change): ResourceChange {
  return {
    action: change.Action ?? '',
    logicalId: change.LogicalResourceId ?? '',
    physicalId: change.PhysicalResourceId ?? null,
    type: change.ResourceType ?? '',
    replacement: REPLACEMENTS[change.Replacement ?? ''] ?? null,
    scope: change.Scope ?? [],
  };
}

function changeSetOf(id: string, output: Sdk.DescribeChangeSetOutput, changes: readonly ResourceChange[]): ChangeSet {
  return { id, status: output.Status ?? '', reason: output.StatusReason ?? null, changes };
}
