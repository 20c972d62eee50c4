import type { Holder } from '../core/bucket/decide.js';
import type { Awaitable, Call, Page, PageRequest } from './call.js';

export type LeaseRecord = Holder & { readonly id: string };

export interface LeaseStore {
  list(call: Call, entityId: string, resource: string, page: PageRequest): Awaitable<Page<LeaseRecord>>;
}
