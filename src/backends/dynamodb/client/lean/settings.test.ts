import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import type { ProvidersModule, SettingsPackages } from './provider-chain.js';
import { resolveSettings } from './settings.js';

const KEYS = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };
const missing = async (): Promise<never> => Promise.reject(new Error('Cannot find package'));
const NONE: SettingsPackages = { providers: missing, client: missing };
const WITH_SDK: SettingsPackages = {
  providers: missing,
  client: async () => import('@aws-sdk/client-dynamodb'),
};

afterEach(() => vi.unstubAllEnvs());

test('the environment alone is enough: no package is loaded', async () => {
  const env = { ...KEYS, AWS_SESSION_TOKEN: 'token', AWS_REGION: 'eu-west-1' };
  const settings = await resolveSettings({}, env, NONE);
  expect(settings).toMatchObject({ region: 'eu-west-1', proxy: null });
  expect(settings.endpoint.href).toBe('https://dynamodb.eu-west-1.amazonaws.com/');
  const credentials = { accessKeyId: 'id', secretAccessKey: 'secret', sessionToken: 'token' };
  expect(await settings.fetchCredentials(false)).toEqual(credentials);
});

test('the region of the caller precedes AWS_REGION, which precedes AWS_DEFAULT_REGION', async () => {
  const regionOf = async (given: { region?: string }, env: object): Promise<string> =>
    (await resolveSettings(given, { ...KEYS, ...env }, NONE)).region;
  const both = { AWS_REGION: 'eu-west-1', AWS_DEFAULT_REGION: 'eu-west-2' };
  expect(await regionOf({ region: 'eu-west-3' }, both)).toBe('eu-west-3');
  expect(await regionOf({}, both)).toBe('eu-west-1');
  expect(await regionOf({}, { AWS_DEFAULT_REGION: 'eu-west-2' })).toBe('eu-west-2');
});

test.each([{ endpoint: 'http://127.0.0.1:8000' }, {}])(
  'an endpoint on this machine needs neither keys nor a region, also if the environment names it: %j',
  async (given) => {
    const env = { AWS_ENDPOINT_URL_DYNAMODB: 'http://127.0.0.1:8000', AWS_PROFILE: 'expired' };
    const { region, fetchCredentials } = await resolveSettings(given, env, NONE);
    expect([region, (await fetchCredentials(false)).accessKeyId]).toEqual(['us-east-1', 'headgate']);
  },
);

test.each([KEYS, { ...KEYS, AWS_PROFILE: 'work' }])(
  'an engine on this machine that verifies keys gets those of the environment %j',
  async (env) => {
    const { fetchCredentials } = await resolveSettings({ endpoint: 'http://127.0.0.1:8000' }, env, NONE);
    expect((await fetchCredentials(false)).accessKeyId).toBe('id');
  },
);

test('a profile takes precedence over keys of the environment, and keys that were replaced are read again', async () => {
  const env: Record<string, string> = { ...KEYS, AWS_REGION: 'eu-west-1' };
  await expect(resolveSettings({}, { ...env, AWS_PROFILE: 'work' }, NONE)).rejects.toThrow('without AWS_PROFILE');
  const { fetchCredentials } = await resolveSettings({}, env, NONE);
  expect((await fetchCredentials(false)).accessKeyId).toBe('id');
  env['AWS_ACCESS_KEY_ID'] = 'replaced';
  expect((await fetchCredentials(true)).accessKeyId).toBe('replaced');
});

test('a missing region is reported as the SDK reports it, with the SDK and without it', async () => {
  const folder = profileFolder('[default]\naws_access_key_id = a\naws_secret_access_key = b\n');
  for (const packages of [NONE, WITH_SDK]) {
    await expect(resolveSettings({}, KEYS, packages)).rejects.toThrow(/^Region is missing/);
  }
  rmSync(folder, { recursive: true });
});

test.each(['localhost', 'localhost:8000'])(
  'the endpoint %s of the environment is refused in one sentence',
  async (url) => {
    const env = { ...KEYS, AWS_REGION: 'eu-west-1', AWS_ENDPOINT_URL: url };
    const message = `Expected an endpoint like http://127.0.0.1:8000, got ${url}`;
    await expect(resolveSettings({}, env, NONE)).rejects.toMatchObject({ code: 'input.invalid', message });
  },
);

test('without keys and without the SDK the error names the package to install', async () => {
  await expect(resolveSettings({ region: 'eu-west-1' }, {}, NONE)).rejects.toMatchObject({
    code: 'infrastructure.missing-peer',
    message:
      'The environment has no AWS credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, without AWS_PROFILE), and the AWS SDK, which finds others, is not installed. Run: npm install @aws-sdk/credential-providers',
  });
});

/** Files as the SDK reads them, named in the environment. */
function profileFolder(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-profile-'));
  const file = join(folder, 'config');
  writeFileSync(file, text);
  vi.stubEnv('AWS_CONFIG_FILE', file);
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', join(folder, 'none'));
  for (const name of ['AWS_REGION', 'AWS_PROFILE', ...Object.keys(KEYS)]) vi.stubEnv(name, undefined);
  return folder;
}

test('a profile has a region and keys, which the client of the SDK reads', async () => {
  const keys = 'aws_access_key_id = of-profile\naws_secret_access_key = s\naws_session_token = t';
  const folder = profileFolder(`[profile work]\nregion = ap-south-1\n${keys}\n`);
  vi.stubEnv('AWS_PROFILE', 'work');
  const env = { ...KEYS, AWS_PROFILE: 'work' };
  const { region, fetchCredentials } = await resolveSettings({}, env, WITH_SDK);
  expect(region).toBe('ap-south-1');
  expect(await fetchCredentials(false)).toMatchObject({ accessKeyId: 'of-profile', sessionToken: 't' });
  expect(await fetchCredentials(true)).toMatchObject({ accessKeyId: 'of-profile' });
  rmSync(folder, { recursive: true });
});

test.each(['region = eu-west-1\nuse_fips_endpoint = true', 'region = fips-eu-west-1'])(
  'a profile whose region is used and that says %j has FIPS hosts',
  async (text) => {
    const folder = profileFolder(`[profile work]\n${text}\n`);
    vi.stubEnv('AWS_PROFILE', 'work');
    const { region, endpoint } = await resolveSettings({}, KEYS, WITH_SDK);
    expect([region, endpoint.host]).toEqual(['eu-west-1', 'dynamodb-fips.eu-west-1.amazonaws.com']);
    rmSync(folder, { recursive: true });
  },
);

test.each([
  ['use_fips_endpoint = true', 'dynamodb-fips.eu-west-1.amazonaws.com'],
  ['use_fips_endpoint=true # for audits', 'dynamodb-fips.eu-west-1.amazonaws.com'],
  ['use_fips_endpoint = false', 'dynamodb.eu-west-1.amazonaws.com'],
  ['# use_fips_endpoint = true', 'dynamodb.eu-west-1.amazonaws.com'],
  ['region = us-east-2', 'dynamodb.eu-west-1.amazonaws.com'],
  ['[profile other]\nuse_fips_endpoint = true', 'dynamodb.eu-west-1.amazonaws.com'],
])(
  'the profile %j decides about FIPS hosts, as in the SDK, where the region is given elsewhere',
  async (text, host) => {
    const folder = profileFolder(`[profile work]\n${text}\n`);
    vi.stubEnv('AWS_PROFILE', 'work');
    // A profile without keys: those of the environment are of the default profile.
    const keys = { providers: async () => ({ fromNodeProviderChain: () => missing }), client: WITH_SDK.client };
    const env = { ...process.env, AWS_REGION: 'eu-west-1' };
    expect((await resolveSettings({}, env, keys)).endpoint.host).toBe(host);
    expect(await hostOfSdk()).toBe(host);
    rmSync(folder, { recursive: true });
  },
);

/** The host that the SDK sends to. */
async function hostOfSdk(): Promise<string> {
  const { DynamoDBClient, ListTablesCommand } = await import('@aws-sdk/client-dynamodb');
  let host = '';
  const requestHandler = {
    handle: async (request: { readonly hostname: string }) => {
      host = request.hostname;
      return Promise.reject(new Error('not sent'));
    },
  };
  const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
  const client = new DynamoDBClient({ region: 'eu-west-1', credentials, maxAttempts: 1, requestHandler });
  await client.send(new ListTablesCommand({})).catch(() => {});
  return host;
}

test('the profile is not asked about FIPS hosts where the environment decides, or the engine is on this machine', async () => {
  const folder = profileFolder('[default]\nuse_fips_endpoint = true\n');
  const env = { ...process.env, ...KEYS, AWS_REGION: 'eu-west-1' };
  const { endpoint } = await resolveSettings({}, { ...env, AWS_USE_FIPS_ENDPOINT: 'false' }, NONE);
  expect(endpoint.host).toBe('dynamodb.eu-west-1.amazonaws.com');
  expect((await resolveSettings({ region: 'fips-eu-west-1' }, env, NONE)).endpoint.host).toContain('fips');
  await resolveSettings({ endpoint: 'http://127.0.0.1:8000' }, env, NONE);
  rmSync(folder, { recursive: true });
});

test('a profile with FIPS hosts is refused together with an endpoint, and where nothing can read it', async () => {
  const folder = profileFolder('[default]\nuse_fips_endpoint = true\n');
  const env = { ...process.env, ...KEYS, AWS_REGION: 'eu-west-1' };
  await expect(resolveSettings({ endpoint: 'http://dynamodb.internal' }, env, WITH_SDK)).rejects.toMatchObject({
    code: 'input.invalid',
    message:
      'use_fips_endpoint of the AWS profile is true, which cannot be combined with the endpoint http://dynamodb.internal',
  });
  await expect(resolveSettings({}, env, NONE)).rejects.toMatchObject({
    code: 'infrastructure.missing-peer',
    message: expect.stringContaining('Set AWS_USE_FIPS_ENDPOINT to true or false') as string,
  });
  rmSync(folder, { recursive: true });
});

test('the package of the providers is preferred to the client, and gets the region and that the last credentials were refused', async () => {
  const told: unknown[] = [];
  const providers: ProvidersModule = {
    fromNodeProviderChain: (init) => async (options) => {
      told.push(init, options);
      return { accessKeyId: 'chain', secretAccessKey: 's' };
    },
  };
  const packages = { providers: async () => providers, client: missing };
  const { fetchCredentials } = await resolveSettings({ region: 'eu-west-1' }, {}, packages);
  expect((await fetchCredentials(true)).accessKeyId).toBe('chain');
  expect(told).toEqual([{ clientConfig: { region: 'eu-west-1' } }, { forceRefresh: true }]);
});
