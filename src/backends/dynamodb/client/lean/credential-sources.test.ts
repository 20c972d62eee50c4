import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, LookupFunction } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { deadlineIn } from '../../../../machine-time.js';
import { leanTransport } from './lean-transport.js';
import type { SettingsPackages } from './provider-chain.js';

/*
 * The sources of credentials of AWS, found by the SDK's own packages and served by this process. The environment of the
 * process is the one of the test, because the SDK reads it.
 */

const GET = { TableName: 'table', Key: { PK: { S: 'a' }, SK: { S: 'b' } } };
const FOUND_NOTHING = '{"ConsumedCapacity":{"TableName":"table","CapacityUnits":0.5}}';
const EXPIRES = new Date(Date.now() + 3_600_000).toISOString();
const missing = async (): Promise<never> => Promise.reject(new Error('Cannot find package'));
const PACKAGES: readonly (readonly [name: string, packages: SettingsPackages])[] = [
  [
    '@aws-sdk/credential-providers',
    { providers: async () => import('@aws-sdk/credential-providers'), client: missing },
  ],
  ['@aws-sdk/client-dynamodb', { providers: missing, client: async () => import('@aws-sdk/client-dynamodb') }],
];
/** Every host is this machine, so that the endpoint is not taken for an engine on it, which needs no credentials. */
const lookup: LookupFunction = (_, options, done) =>
  options.all === true ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4);

let folder: string;
/** The requests to the sources of credentials. */
let asked: string[];
/** How requests to the store were signed. */
let signed: string[];
const servers: Server[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-sources-'));
  [asked, signed] = [[], []];
  for (const name of Object.keys(process.env)) if (/^AWS_(?!SDK_)/.test(name)) vi.stubEnv(name, undefined);
  vi.stubEnv('AWS_REGION', 'eu-west-1');
  vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'config'));
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', join(folder, 'credentials'));
});

afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections();
  rmSync(folder, { recursive: true });
  vi.unstubAllEnvs();
});

async function serve(answer: RequestListener): Promise<number> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** What a source returns, as JSON, and as the XML of STS. */
const keysOf = (accessKeyId: string): string =>
  JSON.stringify({
    Code: 'Success',
    AccessKeyId: accessKeyId,
    SecretAccessKey: 's',
    Token: `token-of-${accessKeyId}`,
    Expiration: EXPIRES,
  });
const assumedRole = (accessKeyId: string): string => `
  <AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
    <AssumeRoleWithWebIdentityResult><Credentials>
      <AccessKeyId>${accessKeyId}</AccessKeyId><SecretAccessKey>s</SecretAccessKey>
      <SessionToken>token-of-${accessKeyId}</SessionToken><Expiration>${EXPIRES}</Expiration>
    </Credentials></AssumeRoleWithWebIdentityResult>
  </AssumeRoleWithWebIdentityResponse>`;

/** A container's endpoint, the metadata service of an instance, and STS. */
async function serveSources(): Promise<string> {
  const port = await serve((request, answer) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const { method, url = '', headers } = request;
      asked.push(`${method} ${url} ${headers.authorization ?? ''}`.trim());
      if (url === '/container') answer.end(keysOf('CONTAINER'));
      else if (url === '/latest/api/token') answer.end('metadata-token');
      else if (url.endsWith('/security-credentials/')) answer.end('role');
      else if (url.endsWith('/security-credentials/role')) answer.end(keysOf('INSTANCE'));
      else if (body.includes('AssumeRoleWithWebIdentity') && body.includes('WebIdentityToken=jwt')) {
        answer.setHeader('content-type', 'text/xml').end(assumedRole('WEBIDENTITY'));
      } else answer.writeHead(404).end();
    });
  });
  return `http://127.0.0.1:${port}`;
}

/** Sends two requests through the lean transport. */
async function useStore(packages: SettingsPackages): Promise<void> {
  const port = await serve((request, answer) => {
    const { authorization = '', 'x-amz-security-token': token = '' } = request.headers;
    const [, keyAndScope = ''] = /Credential=([^,]+)/.exec(authorization) ?? [];
    const [key, , region] = keyAndScope.split('/');
    signed.push(`${key} ${region} ${String(token)}`);
    request.resume().on('end', () => answer.end(FOUND_NOTHING));
  });
  const transport = leanTransport({ endpoint: `http://dynamodb.test:${port}` }, { packages, lookup });
  try {
    for (let sent = 0; sent < 2; sent++) await transport.send('GetItem', GET, deadlineIn(20_000));
  } finally {
    transport.close();
  }
}

const signedBy = (key: string): readonly string[] =>
  Array.from({ length: 2 }, () => `${key} eu-west-1 token-of-${key}`);

test.each(PACKAGES)('a container has credentials from its endpoint, through %s', async (_, packages) => {
  vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', `${await serveSources()}/container`);
  writeFileSync(join(folder, 'authorization'), 'container-token');
  vi.stubEnv('AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE', join(folder, 'authorization'));
  await useStore(packages);
  expect(signed).toEqual(signedBy('CONTAINER'));
  expect(asked).toEqual(['GET /container container-token']);
});

test.each(PACKAGES)('a pod has credentials of a role by its web identity, through %s', async (_, packages) => {
  vi.stubEnv('AWS_ENDPOINT_URL_STS', await serveSources());
  writeFileSync(join(folder, 'web-identity'), 'jwt');
  vi.stubEnv('AWS_WEB_IDENTITY_TOKEN_FILE', join(folder, 'web-identity'));
  vi.stubEnv('AWS_ROLE_ARN', 'arn:aws:iam::123456789012:role/limits');
  await useStore(packages);
  expect(signed).toEqual(signedBy('WEBIDENTITY'));
  expect(asked).toEqual(['POST /']);
});

test.each(PACKAGES)('an instance has credentials from its metadata service, through %s', async (_, packages) => {
  vi.stubEnv('AWS_EC2_METADATA_SERVICE_ENDPOINT', await serveSources());
  await useStore(packages);
  expect(signed).toEqual(signedBy('INSTANCE'));
  expect(asked[0]).toBe('PUT /latest/api/token');
});

test.each(PACKAGES)('a profile has credentials in its file, through %s', async (_, packages) => {
  const keys = 'aws_access_key_id = PROFILE\naws_secret_access_key = s\naws_session_token = token-of-PROFILE';
  writeFileSync(join(folder, 'credentials'), `[work]\n${keys}\n`);
  vi.stubEnv('AWS_PROFILE', 'work');
  await useStore(packages);
  expect(signed).toEqual(signedBy('PROFILE'));
});

test.each(PACKAGES)('a profile has credentials from a program, through %s', async (_, packages) => {
  const keys = { Version: 1, AccessKeyId: 'PROGRAM', SecretAccessKey: 's', SessionToken: 'token-of-PROGRAM' };
  writeFileSync(join(folder, 'keys.json'), JSON.stringify(keys));
  writeFileSync(join(folder, 'config'), `[profile work]\ncredential_process = cat ${join(folder, 'keys.json')}\n`);
  vi.stubEnv('AWS_PROFILE', 'work');
  await useStore(packages);
  expect(signed).toEqual(signedBy('PROGRAM'));
});
