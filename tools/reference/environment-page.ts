import { type Page, pageOf, table } from './page.js';

type Row = readonly [name: string, readBy: string, meaning: string];

const LIBRARY = 'library, command line';
const DYNAMODB = 'the store on DynamoDB';

/** Variables that Headgate defines. */
const OWN: readonly Row[] = [
  [
    'HEADGATE_URL',
    LIBRARY,
    'The address of the store, such as `file:./limits.db` or `dynamodb://my-table`. Default: `memory:`.',
  ],
  ['HEADGATE_NAMESPACE', LIBRARY, 'The namespace. An address with `namespace=` wins over it. Default: `default`.'],
  [
    'HEADGATE_PRINCIPAL',
    LIBRARY,
    'Who makes administrative changes, for the audit. Default of the command line: the user of the operating system.',
  ],
  ['HEADGATE_LEASE_TTL_MS', 'library', 'The default of `leaseTtlMs`.'],
  ['HEADGATE_MAX_RETRIES', 'library', 'The default of `maxRetries`.'],
  [
    'HEADGATE_LEASE_SECRET',
    'library, `headgate serve`',
    'The secret that signs [lease tokens](../guide/travelling-leases.md): at least 16 characters, the same in all processes.',
  ],
  [
    'HEADGATE_LEASE_SECRET_PREVIOUS',
    'library, `headgate serve`',
    'A second secret whose tokens are still accepted, while a secret is replaced.',
  ],
  ['HEADGATE_TOKENS', '`headgate serve`', 'The access tokens as JSON, instead of `--tokens <file>`.'],
  ['HEADGATE_DEBUG', 'command line', '`1`: errors are printed with their stack.'],
  [
    'HEADGATE_LOCAL_DIR',
    '`headgate local`',
    'The folder of the local engine and its data. Default: the folder for state of the user.',
  ],
  ['HEADGATE_TABLE', 'Lambda function of the reconciler', 'The name of the table. The stack sets it.'],
  [
    'HEADGATE_ARCHIVE_BUCKET',
    'Lambda function of the stream',
    'The bucket for audit records that expire. The stack sets it. Left out: they are not archived.',
  ],
  [
    'HEADGATE_TEST_ENDPOINT',
    '`headgate/testing/dynamodb`',
    'The endpoint of a DynamoDB engine that runs already, for tests. Left out: an installed engine is started.',
  ],
];

/** Variables of AWS. A client of your own, and the SDK where it is used, read more of them. */
const AWS: readonly Row[] = [
  ['AWS_REGION', DYNAMODB, 'The region, if the address or the options name none.'],
  ['AWS_DEFAULT_REGION', DYNAMODB, 'The region, if `AWS_REGION` is not set.'],
  ['AWS_ACCESS_KEY_ID', DYNAMODB, 'With `AWS_SECRET_ACCESS_KEY`: credentials that need no other package.'],
  ['AWS_SECRET_ACCESS_KEY', DYNAMODB, 'See `AWS_ACCESS_KEY_ID`.'],
  ['AWS_SESSION_TOKEN', DYNAMODB, 'The session of temporary credentials.'],
  ['AWS_CREDENTIAL_EXPIRATION', DYNAMODB, 'When temporary credentials end.'],
  [
    'AWS_PROFILE',
    DYNAMODB,
    'A profile is used instead of credentials in the environment. It needs `@aws-sdk/credential-providers` or `@aws-sdk/client-dynamodb`.',
  ],
  [
    'AWS_CONFIG_FILE',
    DYNAMODB,
    'The file of profiles, in which `use_fips_endpoint` is looked for. Default: `~/.aws/config`.',
  ],
  ['AWS_SHARED_CREDENTIALS_FILE', DYNAMODB, 'The other file of profiles. Default: `~/.aws/credentials`.'],
  ['AWS_ENDPOINT_URL_DYNAMODB', DYNAMODB, 'The endpoint, if the address or the options name none.'],
  ['AWS_ENDPOINT_URL', DYNAMODB, 'The endpoint, if `AWS_ENDPOINT_URL_DYNAMODB` is not set.'],
  ['AWS_IGNORE_CONFIGURED_ENDPOINT_URLS', DYNAMODB, '`true`: both endpoint variables are ignored.'],
  [
    'AWS_USE_FIPS_ENDPOINT',
    DYNAMODB,
    '`true`: the FIPS endpoint of the region. Default: `use_fips_endpoint` of the profile.',
  ],
  ['AWS_USE_DUALSTACK_ENDPOINT', DYNAMODB, '`true`: the endpoint of the region for IPv4 and IPv6.'],
  [
    'AWS_LAMBDA_FUNCTION_NAME',
    'library',
    'Set by Lambda: a store in memory then emits a warning, because functions share no memory.',
  ],
  [
    'AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED',
    'command line',
    'The command line sets it to `true`, unless it is set, so that the SDK prints no warning about Node.',
  ],
];

/** Variables of the operating system and of Node. */
const OTHERS: readonly Row[] = [
  [
    'HTTPS_PROXY',
    DYNAMODB,
    'The proxy for `https` endpoints. Lower case works too. An endpoint on this machine has no proxy.',
  ],
  ['HTTP_PROXY', DYNAMODB, 'The proxy for `http` endpoints. Lower case works too.'],
  ['NO_PROXY', DYNAMODB, 'Hosts that are reached without a proxy. Lower case works too.'],
  ['NODE_ENV', 'library', '`production`: a store in memory emits a warning.'],
  ['NO_COLOR', 'command line', 'Any text: output without colours.'],
  ['TERM', 'command line', '`dumb`: output without colours.'],
  [
    'XDG_STATE_HOME',
    '`headgate local`',
    'The folder for state of the user, on systems other than Windows. Default: `~/.local/state`.',
  ],
  ['LOCALAPPDATA', '`headgate local`', 'The folder for state of the user on Windows.'],
];

/** The names of all variables on the page. */
export const VARIABLES: readonly string[] = [...OWN, ...AWS, ...OTHERS].map(([name]) => name);

/** `environment.md`: every environment variable that the sources read. */
export function buildEnvironmentPage(): Page {
  return pageOf('environment.md', [
    '# Environment variables',
    '[Options](options.md) in code win over variables; empty text counts as not set. `headgate/client` and the middleware read none.',
    '## Headgate',
    rows(OWN),
    '## AWS',
    rows(AWS),
    '## Others',
    rows(OTHERS),
  ]);
}

function rows(variables: readonly Row[]): string {
  const cells = variables.map(([name, readBy, meaning]) => [`\`${name}\``, readBy, meaning]);
  return table(['variable', 'read by', 'meaning'], cells);
}
