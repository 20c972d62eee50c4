import { type Environment, isLoopbackEndpoint, loopbackDefaults } from '../loopback.js';
import type { AwsCredentials, FetchCredentials } from './sign.js';
import { givenEndpoint, isFipsDecided, parseRegion, resolveEndpoint } from './endpoint.js';
import { loadProviderChain, readProfileFips, readProfileRegion, type SettingsPackages } from './provider-chain.js';
import { proxyOf } from './proxy.js';

export interface GivenSettings {
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
}

export interface LeanSettings {
  readonly region: string;
  readonly endpoint: URL;
  readonly proxy: URL | null;
  readonly fetchCredentials: FetchCredentials;
}

/**
 * What the caller gave, completed from the environment. The AWS SDK is loaded only if the environment has no region or
 * no keys, or if a profile may ask for FIPS hosts. Nothing is requested over the network.
 */
export async function resolveSettings(
  given: GivenSettings,
  env: Environment,
  packages: SettingsPackages,
): Promise<LeanSettings> {
  const address = givenEndpoint(given.endpoint, env);
  // Engines on this machine know no profiles.
  const isLocal = isLoopbackEndpoint(address);
  const local = loopbackDefaults({ region: given.region, endpoint: address }, env);
  const known = given.region || env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || local.region;
  const name = known || (await readProfileRegion(packages));
  const isFipsOpen = Boolean(known) && !isLocal && !isFipsDecided(name, env);
  const endpoint = resolveEndpoint(name, address, env, isFipsOpen && (await readProfileFips(packages, name, env)));
  const { region } = parseRegion(name);
  // A profile takes precedence over keys of the environment, as in the SDK.
  const prefersProfile = Boolean(env['AWS_PROFILE']) && !isLocal;
  const read = (): AwsCredentials | null => local.credentials ?? (prefersProfile ? null : environmentCredentials(env));
  const chain = async (): Promise<FetchCredentials> => loadProviderChain(packages, region);
  return { region, endpoint, proxy: proxyOf(endpoint, env), fetchCredentials: await preferEnvironment(read, chain) };
}

async function preferEnvironment(
  read: () => AwsCredentials | null,
  chain: () => Promise<FetchCredentials>,
): Promise<FetchCredentials> {
  if (read() === null) return chain();
  // Read again after a refusal: a program may have replaced them.
  return async (renewed) => read() ?? (await chain())(renewed);
}

/** null: the environment has none. */
export function environmentCredentials(env: Environment): AwsCredentials | null {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (!accessKeyId || !secretAccessKey) return null;
  const expiration = env['AWS_CREDENTIAL_EXPIRATION'];
  return {
    accessKeyId,
    secretAccessKey,
    ...(env['AWS_SESSION_TOKEN'] ? { sessionToken: env['AWS_SESSION_TOKEN'] } : {}),
    ...(expiration ? { expiration: new Date(expiration) } : {}),
  };
}
