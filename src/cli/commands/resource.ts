import { addNoun, addPaging, addVerb, collect, type CommandContext, onStore } from '../define-command.js';

const load = () => import('../actions/resource.js');

export function addResourceCommands(context: CommandContext): void {
  const resource = addNoun(
    context.program,
    'resource',
    'What is spent on: the limits that each entity has on a resource',
    ['resource set gpt-4 -l tpm:10000/min:50000'],
  );
  addVerb(resource, {
    usage: 'show <resource>',
    summary: 'Show the limits of a resource',
    examples: ['resource show gpt-4'],
  }).action(onStore(context, async () => (await load()).showResource));
  addVerb(resource, {
    usage: 'set <resource>',
    summary: 'Set limits of a resource, for entities without limits of their own; limits that are not named stay',
    examples: ['resource set gpt-4 -l tpm:10000/min:50000 -l slots:20/concurrent'],
  })
    .requiredOption('-l, --limits <limit>', 'a limit such as rpm:60/min; can be repeated', collect)
    .option('--replace', 'set the whole list: limits that are not named go, after a question')
    .action(onStore(context, async () => (await load()).setResource));
  addVerb(resource, {
    usage: 'delete <resource>',
    summary: 'Delete the limits of a resource',
    examples: ['resource delete gpt-4 --yes'],
  }).action(onStore(context, async () => (await load()).deleteResource));
  addVerb(resource, {
    usage: 'list',
    summary: 'List the resources that have limits (looks through all limits of the namespace)',
    examples: ['resource list'],
  }).action(onStore(context, async () => (await load()).listResources));
  addPaging(
    addVerb(resource, {
      usage: 'entities <resource>',
      summary: 'List the entities that have limits of their own on a resource',
      examples: ['resource entities gpt-4'],
    }),
  ).action(onStore(context, async () => (await load()).listResourceEntities));
}
