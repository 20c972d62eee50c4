import type { Command } from 'commander';
import { addNoun, addPaging, addVerb, collect, type CommandContext, onStore } from '../define-command.js';

const load = () => import('../actions/entity.js');

export function addEntityCommands(context: CommandContext): void {
  const entity = addNoun(
    context.program,
    'entity',
    'Who spends: users, API keys, projects; and the limits of one of them',
    ['entity set user-1 -l rpm:60/min', 'entity create user-1 --parent proj-1 --cascade'],
  );
  addRecordOptions(
    addVerb(entity, {
      usage: 'create <entity>',
      summary: 'Create the record of an entity: only a parent or metadata needs one',
      examples: ['entity create proj-1 --name Production', 'entity create user-1 --parent proj-1 --cascade'],
    }),
  ).action(onStore(context, async () => (await load()).createEntity));
  addVerb(entity, {
    usage: 'show <entity>',
    summary: 'Show an entity and its own limits',
    examples: ['entity show user-1', 'entity show user-1 --resource gpt-4 --json'],
  })
    .option('--resource <resource>', 'also its limits on this resource; can be repeated', collect)
    .option('--all-resources', 'also its limits on every resource (looks through all limits of the namespace)')
    .action(onStore(context, async () => (await load()).showEntity));
  addRecordOptions(
    addVerb(entity, {
      usage: 'set <entity>',
      summary: 'Change the record of an entity, or its own limits; what is not named stays',
      examples: [
        'entity set user-1 -l rpm:60/min -l tpm:10000/min',
        'entity set user-1 --resource gpt-4 -l rpm:600/min -l slots:20/concurrent',
        'entity set user-1 --parent proj-1 --cascade',
        `entity set user-1 --no-name --metadata '{"tier":"gold"}'`,
      ],
    }),
  )
    .option('--no-name', 'remove the name')
    .option('--no-parent', 'remove the parent')
    .option('--no-cascade', 'what it spends counts for itself only')
    .option('-l, --limits <limit>', 'a limit of its own, such as rpm:60/min; can be repeated', collect)
    .option('--replace', 'set the whole list: limits that are not named go, after a question')
    .option('--resource <resource>', 'the limits are for this resource; without: for every resource')
    .option('--if-version <version>', 'only if the record is still of this version')
    .action(onStore(context, async () => (await load()).setEntity));
  addVerb(entity, {
    usage: 'delete <entity>',
    summary: 'Delete the record of an entity, or only its own limits',
    examples: [
      'entity delete user-1 --yes',
      'entity delete user-1 --default-limits --yes',
      'entity delete user-1 --resource gpt-4 --yes',
    ],
  })
    .option('--default-limits', 'only its limits for every resource; the record stays')
    .option('--resource <resource>', 'only its limits on this resource; the record stays')
    .action(onStore(context, async () => (await load()).deleteEntity));
  addPaging(
    addVerb(entity, {
      usage: 'list',
      summary: 'List entities that have a record',
      examples: ['entity list', 'entity list --all --json'],
    }),
  ).action(onStore(context, async () => (await load()).listEntities));
  addPaging(
    addVerb(entity, {
      usage: 'children <entity>',
      summary: 'List the entities whose parent this is',
      examples: ['entity children proj-1'],
    }),
  ).action(onStore(context, async () => (await load()).listChildren));
}

function addRecordOptions(command: Command): Command {
  return command
    .option('--name <name>', 'a name for people')
    .option('--parent <entity>', 'the entity above it, which must exist')
    .option('--cascade', 'what it spends counts for its parent, too')
    .option('--metadata <json>', 'a JSON object, stored as it is');
}
