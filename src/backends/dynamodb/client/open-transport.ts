import { importProviders } from './lean/provider-chain.js';
import { leanTransport } from './lean/lean-transport.js';
import { importSdk, type LoadSdk, type SdkOptions, sdkTransport } from './sdk-transport.js';
import type { Transport } from './transport.js';

/** The SDK's client if the caller passes one. Otherwise signed requests without the SDK. */
export function openTransport({ client, region, endpoint }: SdkOptions, load: LoadSdk = importSdk): Transport {
  if (client !== undefined) return sdkTransport({ client }, load);
  return leanTransport({ region, endpoint }, { packages: { providers: importProviders, client: load } });
}
