/** A process that ends in the middle of a stream: `exit` at once, `close` after it has closed its limiter. */
import { limitFetch } from '../../../src/integrations/llm/index.js';
import { RateLimiter } from '../../../src/limiter/rate-limiter.js';
import { callOf, LIMITS } from './world.js';

const [store = '', url = '', way] = process.argv.slice(2);
const limiter = await RateLimiter.open(store, { limits: LIMITS });
const limited = limitFetch(fetch, { limiter, entityId: 'team', measures: { tpm: 'tokens', slots: 'calls' } });
const response = await limited(...callOf('chat', url, { stream: true }));
await response.body?.getReader().read();
if (way === 'close') await limiter.close();
process.exit(0);
