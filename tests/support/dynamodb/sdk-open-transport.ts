import { type LoadSdk, type SdkOptions, sdkTransport } from '../../../src/backends/dynamodb/client/sdk-transport.js';
import type { Transport } from '../../../src/backends/dynamodb/client/transport.js';

/**
 * Takes the place of `src/backends/dynamodb/client/open-transport.ts` in the test runs on the SDK's client
 * (`SDK_CLIENT` in `vitest.config.ts`).
 */
export function openTransport(options: SdkOptions, load?: LoadSdk): Transport {
  return sdkTransport(options, load);
}
