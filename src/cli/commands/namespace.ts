import { addNoun, addPaging, addVerb, type CommandContext, onStore } from '../define-command.js';

const load = () => import('../actions/namespace.js');

export function addNamespaceCommands(context: CommandContext): void {
  const namespace = addNoun(context.program, 'namespace', 'Tenants: nothing is shared between two of them', [
    'namespace create acme',
    'entity list --namespace acme',
  ]);
  addVerb(namespace, {
    usage: 'create <name>',
    summary: 'Create a namespace; one that is there stays as it is',
    examples: ['namespace create acme'],
  }).action(onStore(context, async () => (await load()).createNamespace));
  addPaging(
    addVerb(namespace, { usage: 'list', summary: 'List the active namespaces', examples: ['namespace list'] }),
  ).action(onStore(context, async () => (await load()).listNamespaces));
  addVerb(namespace, {
    usage: 'show <name>',
    summary: 'Show a namespace',
    examples: ['namespace show acme'],
  }).action(onStore(context, async () => (await load()).showNamespace));
  addVerb(namespace, {
    usage: 'delete <name>',
    summary: 'Close a namespace to everybody; its data stays until it is purged',
    examples: ['namespace delete acme --yes'],
  }).action(onStore(context, async () => (await load()).deleteNamespace));
  addVerb(namespace, {
    usage: 'recover <name-or-id>',
    summary: 'Bring a deleted namespace back whole (an id that begins with "-" comes after "--")',
    examples: ['namespace recover acme'],
  }).action(onStore(context, async () => (await load()).recoverNamespace));
  addPaging(
    addVerb(namespace, {
      usage: 'orphans',
      summary: 'List namespaces that were deleted, with their ids',
      examples: ['namespace orphans'],
    }),
  ).action(onStore(context, async () => (await load()).listOrphans));
  addVerb(namespace, {
    usage: 'purge <name-or-id>',
    summary: 'Remove everything that a deleted namespace has (an id that begins with "-" comes after "--")',
    examples: ['namespace purge acme --yes'],
  }).action(onStore(context, async () => (await load()).purgeNamespace));
}
