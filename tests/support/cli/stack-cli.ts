import type { Engine } from '../../../src/testing/dynamodb/index.js';
import { type AwsRequest, type AwsServer, startAwsServer } from '../aws/aws-server.js';
import { type SimulatedAws, simulatedAws } from '../aws/simulated-aws.js';
import { makeEmptyTable } from '../aws/stack-world.js';

/** A simulated AWS that the built program uses through its environment. */
export interface StackCli extends AsyncDisposable {
  readonly aws: SimulatedAws;
  readonly server: AwsServer;
  readonly env: Readonly<Record<string, string>>;
}

/** `onAnswered` is called when a request has taken effect, before it is answered. */
export async function startStackCli(
  engine: Engine,
  onAnswered: (request: AwsRequest) => void = () => {},
): Promise<StackCli> {
  const aws = simulatedAws(async (name) => makeEmptyTable(engine, name));
  const server = await startAwsServer(async (request) => {
    const answer = await aws.answer(request);
    onAnswered(request);
    return answer;
  });
  return {
    aws,
    server,
    env: { ...awsEnvironment(server.endpoint), AWS_ENDPOINT_URL_DYNAMODB: engine.endpoint },
    [Symbol.asyncDispose]: async () => server[Symbol.asyncDispose](),
  };
}

/** The environment for an endpoint that is not AWS's, whatever this machine has set. */
export function awsEnvironment(endpoint: string): Readonly<Record<string, string>> {
  return {
    AWS_ENDPOINT_URL: endpoint,
    AWS_REGION: 'eu-west-1',
    AWS_ACCESS_KEY_ID: 'AKIAIOSFODNN7EXAMPLE',
    AWS_SECRET_ACCESS_KEY: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
    AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
  };
}
