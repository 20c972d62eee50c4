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

/** A name of a region that asks for its FIPS hosts, as the SDK knows it: `fips-us-east-1`, `us-east-1-fips`. */
const FIPS_REGION = /^fips-|-fips$/;

/** The region that signatures name, and whether its name asked for FIPS hosts. */
export function parseRegion(name: string): { readonly region: string; readonly isFips: boolean } {
  if (!FIPS_REGION.test(name)) return { region: name, isFips: false };
  const isGlobal = name === 'fips-aws-global' || name === 'aws-fips';
  return { region: isGlobal ? 'us-east-1' : name.replace(/fips-(?:dkr-|prod-)?|-fips/, ''), isFips: true };
}

/** Whether the environment decides about FIPS hosts: a profile does only if it does not. */
export function isFipsDecided(name: string, env: Environment): boolean {
  return Boolean(env['AWS_USE_FIPS_ENDPOINT']) || parseRegion(name).isFips;
}

/** Where requests go. `given` is what `givenEndpoint` returned. `ofProfile`: the profile asks for FIPS hosts. */
export function resolveEndpoint(
  name: string,
  given: string | undefined,
  env: Environment,
  ofProfile: boolean = false,
): URL {
  const { region, isFips } = parseRegion(name);
  const fips = isTrue(env, 'AWS_USE_FIPS_ENDPOINT') || isFips || ofProfile;
  const dualStack = isTrue(env, 'AWS_USE_DUALSTACK_ENDPOINT');
  if (given !== undefined) {
    // The SDK refuses this, too: a host that the caller names is not known to be of either kind.
    if (isFips) throw contradiction(`The region ${name} has FIPS hosts`, given);
    if (ofProfile) throw contradiction('use_fips_endpoint of the AWS profile is true', given);
    if (fips) throw contradiction('AWS_USE_FIPS_ENDPOINT is true', given);
    if (dualStack) throw contradiction('AWS_USE_DUALSTACK_ENDPOINT is true', given);
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

function contradiction(what: string, endpoint: string): HeadgateError {
  return new HeadgateError('input.invalid', `${what}, which cannot be combined with the endpoint ${endpoint}`);
}

function isTrue(env: Environment, name: string): boolean {
  const value = env[name]?.toLowerCase() ?? '';
  if (value !== '' && value !== 'true' && value !== 'false') {
    throw new HeadgateError('input.invalid', `Expected ${name} to be true or false, got ${value}`);
  }
  return value === 'true';
}
