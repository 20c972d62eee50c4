import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { InfrastructureError } from '../../../../core/errors.js';
import type { Environment } from '../loopback.js';
import type { AwsCredentials, FetchCredentials } from './sign.js';

type Provider = (options?: { readonly forceRefresh?: boolean }) => Promise<AwsCredentials>;

/** What is used of `@aws-sdk/credential-providers`. */
export interface ProvidersModule {
  readonly fromNodeProviderChain: (init: { readonly clientConfig: { readonly region: string } }) => Provider;
}

/** What is used of `@aws-sdk/client-dynamodb`. */
export interface ClientModule {
  readonly DynamoDBClient: new (config: { readonly region?: string }) => {
    readonly config: {
      readonly credentials: Provider;
      readonly region: () => Promise<string>;
      readonly useFipsEndpoint: () => Promise<boolean>;
    };
  };
}

/** Packages that find settings outside of the environment. Each rejects if its package is not installed. */
export interface SettingsPackages {
  readonly providers: () => Promise<ProvidersModule>;
  readonly client: () => Promise<ClientModule>;
}

/** Hidden from bundlers: neither package is needed while the environment has credentials. */
export async function importProviders(name = '@aws-sdk/credential-providers'): Promise<ProvidersModule> {
  return (await import(/* webpackIgnore: true */ /* turbopackIgnore: true */ name)) as ProvidersModule;
}

/**
 * The SDK's own chain: profiles, SSO, web identity, containers, instances. Either package has it; an application that
 * has the client needs no other.
 */
export async function loadProviderChain(packages: SettingsPackages, region: string): Promise<FetchCredentials> {
  const provide = await packages
    .providers()
    .then(({ fromNodeProviderChain }) => fromNodeProviderChain({ clientConfig: { region } }))
    .catch(async () => providerOfClient(packages, region));
  return (renewed) => provide({ forceRefresh: renewed });
}

async function providerOfClient(packages: SettingsPackages, region: string): Promise<Provider> {
  try {
    const { DynamoDBClient } = await packages.client();
    return new DynamoDBClient({ region }).config.credentials;
  } catch (cause) {
    throw new InfrastructureError(
      'infrastructure.missing-peer',
      'The environment has no AWS credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, without AWS_PROFILE), and the AWS SDK, which finds others, is not installed. Run: npm install @aws-sdk/credential-providers',
      { cause },
    );
  }
}

/** The region of the profile, which the SDK reads. If the profile asks for FIPS hosts, the name of the region does so. */
export async function readProfileRegion({ client }: SettingsPackages): Promise<string> {
  const sdk = await client().catch(() => null);
  // The message of the SDK, which `failureOf` recognises.
  if (sdk === null) throw new Error('Region is missing');
  const { config } = new sdk.DynamoDBClient({});
  const region = await config.region();
  return (await config.useFipsEndpoint()) ? `fips-${region}` : region;
}

/** Every other value than false: the SDK refuses what it does not understand. */
const ASKS_FOR_FIPS = /^[ \t]*use_fips_endpoint[ \t]*=(?![ \t]*false[ \t]*$)/m;

/**
 * Whether the profile asks for FIPS hosts. The SDK, which knows the rules of profiles, is loaded only if a file of profiles
 * has the setting.
 */
export async function readProfileFips(
  { client }: SettingsPackages,
  region: string,
  env: Environment,
): Promise<boolean> {
  const paths = [env['AWS_CONFIG_FILE'] || '~/.aws/config', env['AWS_SHARED_CREDENTIALS_FILE'] || '~/.aws/credentials'];
  const texts = await Promise.all(paths.map(async (path) => readFile(inHome(path), 'utf8').catch(() => '')));
  if (!texts.some((text) => ASKS_FOR_FIPS.test(text))) return false;
  const { DynamoDBClient } = await client().catch((cause: unknown) => {
    throw new InfrastructureError(
      'infrastructure.missing-peer',
      'A file of AWS profiles has use_fips_endpoint, and the AWS SDK, which reads it, is not installed. Set AWS_USE_FIPS_ENDPOINT to true or false, or run: npm install @aws-sdk/client-dynamodb',
      { cause },
    );
  });
  return new DynamoDBClient({ region }).config.useFipsEndpoint();
}

function inHome(path: string): string {
  return path.replace(/^~(?=\/)/, () => homedir());
}
