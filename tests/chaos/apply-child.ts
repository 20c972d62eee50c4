/** A process that applies a manifest and kills itself right before the given statement, if any. */
import { createEmbeddedBackend } from '../../src/backends/embedded/embedded-backend.js';
import { FileStorage } from '../../src/backends/embedded/file/file-storage.js';
import { ApplyStopped } from '../../src/core/errors.js';
import { buildFirstNamespaceId } from '../../src/core/identifiers.js';
import type { ManifestData } from '../../src/core/manifest/manifest.js';
import { RateLimiter } from '../../src/limiter/rate-limiter.js';
import { loadSelfKillingDriver } from '../support/file/self-killing-driver.js';

const [path = '', manifest = '', killBefore = ''] = process.argv.slice(2);
const namespace = { id: buildFirstNamespaceId('default'), name: 'default' };
const driver = await loadSelfKillingDriver(Number(killBefore || Number.NaN));
const storage = new FileStorage({ path, synchronous: 'normal', namespace, driver });
const limiter = await RateLimiter.open(createEmbeddedBackend(storage), { timeouts: { callMs: 20_000 } });
await limiter.manifest.apply(JSON.parse(manifest) as ManifestData).catch((error: unknown) => {
  if (!(error instanceof ApplyStopped)) throw error;
  process.exitCode = error.exitCode;
});
await limiter.close();
process.disconnect();
