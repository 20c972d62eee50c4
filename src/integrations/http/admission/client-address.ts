import { ValidationError } from '../../../core/errors.js';

/**
 * The address that the outermost trusted proxy has seen, from `X-Forwarded-For`. Each proxy appends the address of its
 * client, so the entry is counted from the right: entries further left can be sent by anybody. null: there is none.
 */
export function forwardedAddress(header: string | null | undefined, trustedProxies: number): string | null {
  if (trustedProxies === 0 || header === null || header === undefined) return null;
  const entries = header.split(',');
  // Fewer entries than proxies: the request did not come through all of them.
  const entry = entries[entries.length - trustedProxies]?.trim();
  return entry === undefined || entry === '' ? null : entry;
}

export function checkTrustedProxies(trustedProxies: number): void {
  if (Number.isInteger(trustedProxies) && trustedProxies >= 0) return;
  throw new ValidationError('trustedProxies', 'the number of proxies before this server, 0 or more', trustedProxies);
}
