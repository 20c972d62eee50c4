import type { AwsCredentials } from './lean/sign.js';

interface ClientSettings {
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|\[::1\]|(?:.+\.)?localhost)$/;

export function isLoopback(hostname: string): boolean {
  return LOOPBACK.test(hostname);
}

/** Whether it is the address of an engine on this machine. */
export function isLoopbackEndpoint(endpoint: string | undefined): boolean {
  return endpoint !== undefined && URL.canParse(endpoint) && isLoopback(new URL(endpoint).hostname);
}

/** DynamoDB Local accepts letters and digits only. */
const MADE_UP = { accessKeyId: 'headgate', secretAccessKey: 'headgate' };

/**
 * Defaults for what the SDK requires besides an endpoint on this machine, so that an address alone is enough: local
 * engines accept any region and any key. Keys of the environment take precedence, because some engines verify them.
 * Profiles are not read: their keys are for AWS, and an expired session must not stop work on this machine.
 */
export function loopbackDefaults(
  { region, endpoint }: ClientSettings,
  env: Environment = process.env,
): { readonly region?: string; readonly credentials?: AwsCredentials } {
  if (!isLoopbackEndpoint(endpoint)) return {};
  return {
    ...(region === undefined && !env['AWS_REGION'] ? { region: 'us-east-1' } : {}),
    ...(env['AWS_ACCESS_KEY_ID'] ? {} : { credentials: MADE_UP }),
  };
}
