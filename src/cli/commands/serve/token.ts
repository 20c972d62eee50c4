import { Option } from 'commander';
import { addExamples, addVerb, type Definition, withoutStore } from '../../run/define-command.js';
import type { Result } from '../../run/result.js';

/** `--json` of `token create` */
export interface CreatedTokenShape {
  readonly name: string;
  readonly role: (typeof ROLES)[number];
  readonly namespace: string;
  readonly entityPrefix: string | null;
  /** Whether it may send limits and an outage policy of its own although it has a prefix. */
  readonly ownLimits: boolean;
  readonly file: string;
  /** Shown once. The file keeps its SHA-256 only. */
  readonly secret: string;
}

/** `--json` of `token list` */
export interface TokensShape {
  readonly file: string;
  readonly tokens: readonly Omit<CreatedTokenShape, 'file' | 'secret'>[];
}

/** `--json` of `token revoke` */
export interface RevokedTokenShape {
  readonly file: string;
  readonly revoked: string;
}

const ROLES = ['app', 'admin'] as const;

interface FileFlag {
  readonly file: string;
}

interface CreateFlags extends FileFlag {
  readonly role: (typeof ROLES)[number];
  readonly entityPrefix?: string;
  readonly ownLimits?: boolean;
  readonly namespace?: string;
}

export const define: Definition = (token, context) => {
  addExamples(token, ['token create web', 'token list']);
  const FILE = ['--file <path>', 'the token file', 'headgate-tokens.json'] as const;
  addVerb(token, {
    usage: 'create <name>',
    summary: 'Create a token, and print its secret once',
    examples: [
      'token create web',
      `token create ops --role admin --namespace '*'`,
      'token create acme --entity-prefix acme/',
    ],
  })
    .option(...FILE)
    .addOption(
      new Option('--role <role>', 'app (asks and settles) or admin (also changes limits)')
        .choices(ROLES)
        .default('app'),
    )
    .option('--entity-prefix <text>', 'reach only entities whose id begins with this')
    .option('--own-limits', 'with a prefix: it may also send limits and an outage policy of its own')
    .action(withoutStore(context, create));
  addVerb(token, { usage: 'list', summary: 'List the tokens of a file', examples: ['token list'] })
    .option(...FILE)
    .action(withoutStore(context, list));
  addVerb(token, {
    usage: 'revoke <name>',
    summary: 'Remove a token; a running server must be started again',
    examples: ['token revoke web'],
  })
    .option(...FILE)
    .action(withoutStore(context, revoke));
};

async function create(args: readonly string[], flags: CreateFlags): Promise<Result<CreatedTokenShape>> {
  const { addToken } = await import('../../../server/access/token-file.js');
  const [name = ''] = args;
  const { role, file, namespace = 'default', entityPrefix, ownLimits = false } = flags;
  const prefix = entityPrefix === undefined ? {} : { entityPrefix };
  const own = ownLimits ? { ownLimits } : {};
  const secret = await addToken(file, { name, role, namespace, ...prefix, ...own });
  const data = { name, role, namespace, entityPrefix: entityPrefix ?? null, ownLimits, file, secret };
  return {
    data,
    text: (style) =>
      [
        style.bold(secret),
        '',
        `This is the only time that the secret is shown. ${file} keeps its SHA-256.`,
        ...(entityPrefix === undefined ? [] : noteOnPrefix(entityPrefix)),
        `Start the server with: headgate serve --tokens ${file}`,
      ].join('\n'),
  };
}

/** `acme` also covers `acme2`, which may belong to another tenant. */
function noteOnPrefix(prefix: string): readonly string[] {
  if (!/[\dA-Za-z]$/.test(prefix)) return [];
  return [`The prefix ${prefix} also covers entities such as ${prefix}2: end it with a separator, such as ${prefix}/`];
}

async function list(_args: readonly string[], { file }: FileFlag): Promise<Result<TokensShape>> {
  const { readTokenFile } = await import('../../../server/access/token-file.js');
  const stored = await readTokenFile(file);
  const tokens = stored.map(({ name, role, namespace, entityPrefix = null, ownLimits = false }) => ({
    name,
    role,
    namespace,
    entityPrefix,
    ownLimits,
  }));
  return {
    data: { file, tokens },
    text: () =>
      tokens.length === 0
        ? `${file} has no tokens`
        : tokens
            .map(({ name, role, namespace, entityPrefix, ownLimits }) =>
              [
                name,
                role,
                `namespace ${namespace}`,
                ...(entityPrefix === null ? [] : [`entities ${entityPrefix}*`]),
                ...(ownLimits ? ['own limits'] : []),
              ].join('  '),
            )
            .join('\n'),
  };
}

async function revoke(args: readonly string[], { file }: FileFlag): Promise<Result<RevokedTokenShape>> {
  const { removeToken } = await import('../../../server/access/token-file.js');
  const [name = ''] = args;
  await removeToken(file, name);
  return { data: { file, revoked: name }, text: () => `removed ${name} from ${file}` };
}
