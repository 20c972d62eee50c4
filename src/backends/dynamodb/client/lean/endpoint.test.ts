import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { expect, test } from 'vitest';
import { givenEndpoint, parseRegion, resolveEndpoint } from './endpoint.js';

const REGIONS = [
  'us-east-1',
  'eu-central-2',
  'ap-southeast-7',
  'mx-central-1',
  'us-gov-east-1',
  'us-gov-west-1',
  'cn-north-1',
  'cn-northwest-1',
  'us-iso-east-1',
  'us-iso-west-1',
  'us-isob-east-1',
  'eu-isoe-west-1',
  'us-isof-south-1',
  'eusc-de-east-1',
  'xx-new-9',
];

test.each(REGIONS)('the hosts of the region %s are those of the SDK, also with FIPS and dual stack', (region) => {
  const { endpointProvider } = new DynamoDBClient({ region }).config;
  for (const fips of [false, true]) {
    for (const dualStack of [false, true]) {
      const expected = endpointProvider({ Region: region, UseFIPS: fips, UseDualStack: dualStack });
      const env = { AWS_USE_FIPS_ENDPOINT: String(fips), AWS_USE_DUALSTACK_ENDPOINT: String(dualStack) };
      expect(resolveEndpoint(region, undefined, env).href).toBe(expected.url.href);
    }
  }
});

test.each([
  'fips-us-east-1',
  'us-east-1-fips',
  'fips-dkr-us-east-1',
  'fips-prod-eu-west-1',
  'fips-aws-global',
  'aws-fips',
  'us-gov-west-1-fips',
  'us-fips-east-1',
  'us-east-1',
])('the region %s has the hosts and the name in signatures that the SDK gives it', async (name) => {
  const { config } = new DynamoDBClient({ region: name });
  const region = await config.region();
  expect(parseRegion(name)).toEqual({ region, isFips: await config.useFipsEndpoint() });
  for (const dualStack of [false, true]) {
    const useFips = await config.useFipsEndpoint();
    const expected = config.endpointProvider({ Region: region, UseFIPS: useFips, UseDualStack: dualStack });
    const env = { AWS_USE_DUALSTACK_ENDPOINT: String(dualStack) };
    expect(resolveEndpoint(name, undefined, env).href).toBe(expected.url.href);
  }
});

test('a region with FIPS hosts is refused together with an endpoint', () => {
  expect(() => resolveEndpoint('fips-us-east-1', 'http://mine:3', {})).toThrow(
    'The region fips-us-east-1 has FIPS hosts, which cannot be combined with the endpoint http://mine:3',
  );
});

test('the endpoint of the caller precedes that of the service, which precedes that of all services', () => {
  const all = { AWS_ENDPOINT_URL: 'http://all:1' };
  const service = { ...all, AWS_ENDPOINT_URL_DYNAMODB: 'http://dynamodb:2' };
  expect(givenEndpoint('http://mine:3', service)).toBe('http://mine:3');
  expect(givenEndpoint(undefined, service)).toBe('http://dynamodb:2');
  expect(givenEndpoint(undefined, all)).toBe('http://all:1');
  expect(givenEndpoint(undefined, {})).toBeUndefined();
});

test('endpoints of the environment are ignored on request, and that of the caller is not', () => {
  const env = { AWS_ENDPOINT_URL: 'http://all:1', AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: 'true' };
  expect(givenEndpoint(undefined, env)).toBeUndefined();
  expect(givenEndpoint('http://mine:3', env)).toBe('http://mine:3');
});

test.each(['AWS_USE_FIPS_ENDPOINT', 'AWS_USE_DUALSTACK_ENDPOINT'])(
  '%s is refused together with an endpoint, and with another value than true or false',
  (name) => {
    const invalid = expect.objectContaining({
      code: 'input.invalid',
      message: expect.stringContaining(name) as string,
    });
    expect(() => resolveEndpoint('us-east-1', 'http://mine:3', { [name]: 'true' })).toThrow(invalid);
    expect(() => resolveEndpoint('us-east-1', undefined, { [name]: 'yes' })).toThrow(invalid);
    expect(resolveEndpoint('us-east-1', 'http://mine:3/', { [name]: 'false' }).href).toBe('http://mine:3/');
  },
);

test.each(['us-east-1.example.com', 'us/east', '', '-x', 'a@b'])('the region %j is not accepted', (region) => {
  expect(() => resolveEndpoint(region, undefined, {})).toThrow(/^Region not accepted/);
});

test.each(['localhost', 'localhost:8000', 'ftp://host', 'http://'])('the endpoint %s is refused', (endpoint) => {
  expect(() => resolveEndpoint('us-east-1', endpoint, {})).toThrow('Expected an endpoint like http://127.0.0.1:8000');
});
