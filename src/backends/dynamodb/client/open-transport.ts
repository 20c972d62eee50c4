import { importProviders } from './lean/provider-chain.js';
import { leanTransport } from './lean/lean-transport.js';
import { importSdk, type LoadSdk, type SdkOptions, sdkTransport } from './sdk-transport.js';
import type { Transport } from './transport.js';

/** The SDK's client if the caller passes one. Otherwise signed requests without the SDK. */
export function openTransport(options: SdkOptions, load: LoadSdk = importSdk): Transport {
  if (options.client !== undefined) return sdkTransport(options, load);
  return leanTransport(options, { packages: { providers: importProviders, client: load } });
}
