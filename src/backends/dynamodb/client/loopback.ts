import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';

interface Place {
  readonly region?: string | undefined;
  readonly endpoint?: string | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|\[::1\]|(?:.+\.)?localhost)$/;

/** DynamoDB Local takes letters and digits only. */
const MADE_UP = { accessKeyId: 'headgate', secretAccessKey: 'headgate' };

/**
 * What the SDK asks for besides an endpoint on this machine, where engines take any region and any key: an address alone is
 * enough. Keys of the environment go first, as some engines verify them; profiles are not looked at, since their keys are
 * for AWS, and a session that has expired must not stop work on this machine.
 */
export function loopbackDefaults(
  { region, endpoint }: Place,
  env: Environment = process.env,
): Pick<DynamoDBClientConfig, 'region' | 'credentials'> {
  if (endpoint === undefined || !LOOPBACK.test(new URL(endpoint).hostname)) return {};
  return {
    ...(region === undefined && !env['AWS_REGION'] ? { region: 'us-east-1' } : {}),
    ...(env['AWS_ACCESS_KEY_ID'] ? {} : { credentials: MADE_UP }),
  };
}
