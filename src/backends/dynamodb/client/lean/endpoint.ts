import { HeadgateError } from '../../../../core/errors.js';
import type { Environment } from '../loopback.js';

/**
 * Domains of the partitions whose domains differ from those of the largest one
 * (https://docs.aws.amazon.com/general/latest/gr/ddb.html). The region's name begins with the key.
 */
const PARTITIONS: readonly (readonly [prefix: string, domain: string, dualStackDomain: string])[] = [
  ['cn-', 'amazonaws.com.cn', 'api.amazonwebservices.com.cn'],
  ['eusc-', 'amazonaws.eu', 'api.amazonwebservices.eu'],
  ['us-iso-', 'c2s.ic.gov', 'api.aws.ic.gov'],
  ['us-isob-', 'sc2s.sgov.gov', 'api.aws.scloud'],
  ['eu-isoe-', 'cloud.adc-e.uk', 'api.cloud-aws.adc-e.uk'],
  ['us-isof-', 'csp.hci.ic.gov', 'api.aws.hci.ic.gov'],
  ['', 'amazonaws.com', 'api.aws'],
];

/** A region is part of a host name. */
const HOST_LABEL = /^(?!-)[a-zA-Z0-9-]{1,63}(?<!-)$/;

/** The address that the caller or the environment names. undefined: the one of the region. */
export function givenEndpoint(endpoint: string | undefined, env: Environment): string | undefined {
  if (endpoint !== undefined) return endpoint;
  if (isTrue(env, 'AWS_IGNORE_CONFIGURED_ENDPOINT_URLS')) return undefined;
  return env['AWS_ENDPOINT_URL_DYNAMODB'] || env['AWS_ENDPOINT_URL'] || undefined;
}

/** Where requests go. `given` is what `givenEndpoint` returned. */
export function resolveEndpoint(region: string, given: string | undefined, env: Environment): URL {
  const fips = isTrue(env, 'AWS_USE_FIPS_ENDPOINT');
  const dualStack = isTrue(env, 'AWS_USE_DUALSTACK_ENDPOINT');
  if (given !== undefined) {
    // The SDK refuses this, too: a host that the caller names is not known to be of either kind.
    if (fips) throw contradiction('AWS_USE_FIPS_ENDPOINT', given);
    if (dualStack) throw contradiction('AWS_USE_DUALSTACK_ENDPOINT', given);
    if (!/^https?:\/\//.test(given) || !URL.canParse(given)) {
      throw new HeadgateError('input.invalid', `Expected an endpoint like http://127.0.0.1:8000, got ${given}`);
    }
    return new URL(given);
  }
  // The message of the SDK, which `failureOf` recognises.
  if (!HOST_LABEL.test(region)) throw new Error(`Region not accepted: ${region} is not a part of a host name`);
  const [, domain, dualStackDomain] = PARTITIONS.find(([prefix]) => region.startsWith(prefix)) ?? ['', '', ''];
  // In GovCloud the normal hosts are FIPS hosts.
  const service = fips && (dualStack || !region.startsWith('us-gov-')) ? 'dynamodb-fips' : 'dynamodb';
  return new URL(`https://${service}.${region}.${dualStack ? dualStackDomain : domain}`);
}

function contradiction(name: string, endpoint: string): HeadgateError {
  return new HeadgateError('input.invalid', `${name} is true, which cannot be combined with the endpoint ${endpoint}`);
}

function isTrue(env: Environment, name: string): boolean {
  const value = env[name]?.toLowerCase() ?? '';
  if (value !== '' && value !== 'true' && value !== 'false') {
    throw new HeadgateError('input.invalid', `Expected ${name} to be true or false, got ${value}`);
  }
  return value === 'true';
}
