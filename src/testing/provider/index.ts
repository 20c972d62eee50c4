/** A simulated provider of models, for tests of code that calls one. */
export {
  type Provider,
  type ProviderCall,
  type ProviderOptions,
  type ProviderPlan,
  startProvider,
} from './provider.js';
export { type ProviderApi, type ProviderRequest, wordsIn } from './provider-request.js';
export type { ProviderQuota } from './quota.js';
export { REFUSAL_FORMATS, type RefusalFormat } from './refusals.js';
