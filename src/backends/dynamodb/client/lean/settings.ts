import { type Environment, loopbackDefaults } from '../loopback.js';
import { environmentCredentials, type FetchCredentials } from './credentials.js';
import { givenEndpoint, resolveEndpoint } from './endpoint.js';
import { loadProviderChain, readProfileRegion, type SettingsPackages } from './provider-chain.js';
import { proxyOf } from './proxy.js';
import type { AwsCredentials } from './sign.js';

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
 * no keys. Nothing is requested over the network.
 */
export async function resolveSettings(
  given: GivenSettings,
  env: Environment,
  packages: SettingsPackages,
): Promise<LeanSettings> {
  const address = givenEndpoint(given.endpoint, env);
  const local = loopbackDefaults({ region: given.region, endpoint: address }, env);
  const region =
    given.region ||
    env['AWS_REGION'] ||
    env['AWS_DEFAULT_REGION'] ||
    local.region ||
    (await readProfileRegion(packages));
  const endpoint = resolveEndpoint(region, address, env);
  return {
    region,
    endpoint,
    proxy: proxyOf(endpoint, env),
    fetchCredentials: await credentialsSource(local.credentials, region, env, packages),
  };
}

async function credentialsSource(
  local: AwsCredentials | undefined,
  region: string,
  env: Environment,
  packages: SettingsPackages,
): Promise<FetchCredentials> {
  if (local !== undefined) return async () => local;
  if (environmentCredentials(env) === null) return loadProviderChain(packages, region);
  // Read again after a refusal: a program may have replaced them.
  return async () => environmentCredentials(env) ?? (await loadProviderChain(packages, region))(true);
}
