import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { loopbackDefaults } from '../../../src/backends/dynamodb/client/loopback.js';
import { type LoadSdk, type SdkOptions, sdkTransport } from '../../../src/backends/dynamodb/client/sdk-transport.js';
import type { Transport } from '../../../src/backends/dynamodb/client/transport.js';

/**
 * Takes the place of `src/backends/dynamodb/client/open-transport.ts` in the test runs on the SDK's client
 * (`SDK_CLIENT` in `vitest.config.ts`). Makes the client that a user would pass, and closes it.
 */
export function openTransport({ client: given, region, endpoint }: SdkOptions, load?: LoadSdk): Transport {
  const client =
    given ??
    new DynamoDBClient({
      ...loopbackDefaults({ region, endpoint }),
      ...(region === undefined ? {} : { region }),
      ...(endpoint === undefined ? {} : { endpoint }),
      requestHandler: { connectionTimeout: 500, httpAgent: { keepAlive: true, maxSockets: 256 } },
    });
  const transport = sdkTransport({ client }, load);
  const close = (): void => {
    transport.close();
    if (given === undefined) client.destroy();
  };
  return { ...transport, close };
}
