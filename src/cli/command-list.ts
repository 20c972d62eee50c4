import type { Definition } from './run/define-command.js';

/** What `headgate --help` shows of a command. */
export interface ListedCommand {
  /** The name with its arguments. */
  readonly usage: string;
  readonly summary: string;
  /** The file of the command, which has the rest of its definition. */
  readonly load: () => Promise<{ readonly define: Definition }>;
}

/** In the order of the help. */
export const COMMAND_GROUPS: Readonly<Record<string, readonly ListedCommand[]>> = {
  'Inspect and try:': [
    {
      usage: 'acquire <entity> <resource>',
      summary: 'Try one request, and explain the decision level by level',
      load: () => import('./commands/inspect/acquire.js'),
    },
    {
      usage: 'charge <entity> <resource>',
      summary: 'Take amounts without a decision, into debt if need be',
      load: () => import('./commands/inspect/charge.js'),
    },
    {
      usage: 'credit <entity> <resource>',
      summary: 'Give amounts back, never above the capacity',
      load: () => import('./commands/inspect/charge.js'),
    },
    {
      usage: 'config',
      summary: 'Show which limits apply, and where they come from',
      load: () => import('./commands/inspect/config.js'),
    },
    {
      usage: 'bucket',
      summary: 'Show or reset what is available of the limits of an entity on a resource',
      load: () => import('./commands/inspect/bucket.js'),
    },
    {
      usage: 'leases',
      summary: 'List leases, and end those whose process is gone',
      load: () => import('./commands/inspect/leases.js'),
    },
    {
      usage: 'capacity <resource>',
      summary: 'Show the capacity of a resource over all entities, and how much is available',
      load: () => import('./commands/inspect/capacity.js'),
    },
    {
      usage: 'usage',
      summary: 'Show the consumption of a resource by hour, day and month (UTC)',
      load: () => import('./commands/inspect/usage.js'),
    },
    { usage: 'audit', summary: 'Show who changed what, and when', load: () => import('./commands/inspect/audit.js') },
    {
      usage: 'check',
      summary: 'Check that the store answers and that the namespace exists',
      load: () => import('./commands/inspect/check.js'),
    },
  ],
  'Set limits, from the weakest level to the strongest:': [
    {
      usage: 'system',
      summary: 'Manage the limits that apply where no other level has limits',
      load: () => import('./commands/manage/system.js'),
    },
    {
      usage: 'resource',
      summary: 'Manage the limits of a resource, for entities without limits of their own',
      load: () => import('./commands/manage/resource.js'),
    },
    {
      usage: 'entity',
      summary: 'Manage entities (users, API keys, projects) and their own limits',
      load: () => import('./commands/manage/entity.js'),
    },
    {
      usage: 'limits',
      summary: 'Manage all limits and entities of a namespace as one file',
      load: () => import('./commands/manage/limits.js'),
    },
  ],
  'Stop and revoke:': [
    {
      usage: 'pause <entity>',
      summary: 'Stop an entity, on every resource or on one, for a time or forever (revoke a key)',
      load: () => import('./commands/manage/pause.js'),
    },
    {
      usage: 'resume <entity>',
      summary: 'End the pause of an entity, or of one of its resources',
      load: () => import('./commands/manage/resume.js'),
    },
  ],
  'Tenants:': [
    {
      usage: 'namespace',
      summary: 'Manage tenants, which share nothing',
      load: () => import('./commands/manage/namespace.js'),
    },
  ],
  'Maintain a DynamoDB table:': [
    {
      usage: 'worker',
      summary: 'Read the change stream of a table: count usage, archive audit records, split busy buckets',
      load: () => import('./commands/maintain/worker.js'),
    },
    {
      usage: 'reconcile',
      summary: 'Reclaim expired leases, repair slot counts and merge idle shards, in every namespace',
      load: () => import('./commands/maintain/reconcile.js'),
    },
    {
      usage: 'migrate',
      summary: 'Convert a table of an older layout: copy, verify, remove; an interrupted run can be continued',
      load: () => import('./commands/maintain/migrate.js'),
    },
  ],
  'Develop on this machine:': [
    {
      usage: 'local',
      summary: 'Run DynamoDB with a table on this machine, without AWS',
      load: () => import('./commands/local/local.js'),
    },
  ],
  'Deploy to AWS:': [
    {
      usage: 'deploy',
      summary: 'Create or update the stack of an environment: table, functions, alarms, policies',
      load: () => import('./commands/stack/deploy.js'),
    },
    {
      usage: 'status',
      summary: 'Show the state of a stack, its table and its functions, and its last failure',
      load: () => import('./commands/stack/status.js'),
    },
    {
      usage: 'list',
      summary: 'List the stacks of Headgate in the region',
      load: () => import('./commands/stack/list.js'),
    },
    {
      usage: 'upgrade',
      summary:
        'Upgrade a stack to this version: the template, the data in its table, the code, the version of the table',
      load: () => import('./commands/stack/upgrade.js'),
    },
    {
      usage: 'delete',
      summary: 'Delete a stack; its table and its archive stay',
      load: () => import('./commands/stack/delete.js'),
    },
    {
      usage: 'template',
      summary: 'Print the CloudFormation template: table, functions, alarms, policies',
      load: () => import('./commands/stack/template.js'),
    },
  ],
  'About this program:': [
    {
      usage: 'completion <shell>',
      summary: 'Print a script that completes commands and options in a shell',
      load: () => import('./commands/about/completion.js'),
    },
    {
      usage: 'tour',
      summary: 'Show what Headgate does, in a few seconds and without a store',
      load: () => import('./commands/about/tour.js'),
    },
    {
      usage: 'version',
      summary: 'Show the version of Headgate and of Node',
      load: () => import('./commands/about/version.js'),
    },
  ],
};
