import { reasonOf } from '../core/reason-of.js';

/** The default `onError` of limiters, servers and limited models. */
export function warnOfError(error: unknown, where: string): void {
  process.emitWarning(`${where}: ${reasonOf(error)}`, 'HeadgateWarning');
}
