import type * as Sdk from '@aws-sdk/client-cloudformation';
import { type AwsOptions, clientConfig, lazyClient, serviceErrorName } from './aws-client.js';
import { saysNothingToDo } from '../change-set/change-set.js';
import { retainedIn } from './retained-resources.js';
import { isStart } from '../status/stack-events.js';
import type { ResourceChange, ChangeSet, CloudFormation, ImportedResource, Stack, StackEvent } from '../stack-tools.js';

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
      let token: string | undefined;
      do {
        const page = await describe(token === undefined ? {} : { NextToken: token });
        yield* (page.Stacks ?? []).map(stackOf);
        token = page.NextToken;
      } while (token !== undefined);
    },
    async readEvents(nameOrId) {
      const events: StackEvent[] = [];
      let token: string | undefined;
      do {
        const input = { StackName: nameOrId, ...(token === undefined ? {} : { NextToken: token }) };
        const page = await send('CloudFormation DescribeStackEvents', async ({ sdk, client }, abortSignal) =>
          client.send(new sdk.DescribeStackEventsCommand(input), { abortSignal }),
        );
        events.push(...(page.StackEvents ?? []).map(eventOf));
        token = events.some(isStart) ? undefined : page.NextToken;
      } while (token !== undefined);
      return events;
    },
    async readResources(name) {
      const found: [string, string][] = [];
      let token: string | undefined;
      do {
        const input = { StackName: name, ...(token === undefined ? {} : { NextToken: token }) };
        const page = await send('CloudFormation ListStackResources', async ({ sdk, client }, abortSignal) =>
          client.send(new sdk.ListStackResourcesCommand(input), { abortSignal }),
        );
        for (const { LogicalResourceId, PhysicalResourceId, ResourceStatus } of page.StackResourceSummaries ?? []) {
          const isDeleted = ResourceStatus === 'DELETE_COMPLETE';
          if (LogicalResourceId !== undefined && PhysicalResourceId !== undefined && !isDeleted) {
            found.push([LogicalResourceId, PhysicalResourceId]);
          }
        }
        token = page.NextToken;
      } while (token !== undefined);
      return Object.fromEntries(found);
    },
    async readRetained(name) {
      const input = { StackName: name, TemplateStage: 'Original' as const };
      const { TemplateBody } = await send('CloudFormation GetTemplate', async ({ sdk, client }, abortSignal) =>
        client.send(new sdk.GetTemplateCommand(input), { abortSignal }),
      );
      return retainedIn(TemplateBody ?? '');
    },
    async createChangeSet({ stack, name, type, template, parameters, tags, imports }) {
      const input: Sdk.CreateChangeSetInput = {
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
      let token: string | undefined;
      let last: Sdk.DescribeChangeSetOutput;
      do {
        const input = { ChangeSetName: id, ...(token === undefined ? {} : { NextToken: token }) };
        last = await send('CloudFormation DescribeChangeSet', async ({ sdk, client }, abortSignal) =>
          client.send(new sdk.DescribeChangeSetCommand(input), { abortSignal }),
        );
        changes.push(...(last.Changes ?? []).map(changeOf));
        token = last.NextToken;
      } while (token !== undefined);
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
