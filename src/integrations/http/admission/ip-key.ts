import { ValidationError } from '../../../core/errors.js';

/** Options of `ipKey`. */
export interface IpKeyOptions {
  /** The bits of an IPv6 address that identify a client. Providers give each customer a network, not an address. Default: 56. */
  readonly ipv6Prefix?: number;
}

const DEFAULT_PREFIX = 56;
const GROUPS = 8;

/**
 * The key of a client by its address. IPv4 addresses are keys themselves. IPv6 addresses are grouped by their network,
 * because one client can use every address of it. `::ffff:192.0.2.1` and `64:ff9b::192.0.2.1` count as the IPv4 address that
 * they contain.
 */
export function ipKey(address: string, { ipv6Prefix = DEFAULT_PREFIX }: IpKeyOptions = {}): string {
  if (!Number.isInteger(ipv6Prefix) || ipv6Prefix < 1 || ipv6Prefix > 128) {
    throw new ValidationError('ipv6Prefix', 'a whole number from 1 to 128', ipv6Prefix);
  }
  const key = ipKeyOf(address, ipv6Prefix);
  if (key === null) throw new ValidationError('address', 'an IPv4 or IPv6 address', address);
  return key;
}

/** null: the text is no address. */
export function ipKeyOf(text: string, ipv6Prefix = DEFAULT_PREFIX): string | null {
  const plain = withoutZone(withoutPort(text.trim()));
  if (isIpv4(plain)) return plain;
  const groups = readIpv6(plain);
  return groups && (embeddedIpv4(groups) ?? `${printNetwork(groups, ipv6Prefix)}/${ipv6Prefix}`);
}

/** Azure's front ends add a port to the addresses that they forward: `192.0.2.1:443`, `[2001:db8::1]:443`. */
function withoutPort(address: string): string {
  const bracketed = /^\[([^\]]*)\](?::\d+)?$/.exec(address)?.[1];
  return bracketed ?? /^([\d.]+):\d+$/.exec(address)?.[1] ?? address;
}

/** `fe80::1%eth0` names a network card of this machine. */
function withoutZone(address: string): string {
  const at = address.indexOf('%');
  return at < 0 ? address : address.slice(0, at);
}

function isIpv4(text: string): boolean {
  const parts = text.split('.');
  return parts.length === 4 && parts.every((part) => /^(?:0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255);
}

/** The eight groups of 16 bits; null: not an IPv6 address. */
function readIpv6(text: string): readonly number[] | null {
  const halves = text.split('::');
  if (halves.length > 2) return null;
  const head = readGroups(halves[0] ?? '');
  const tail = halves.length === 2 ? readGroups(halves[1] ?? '') : [];
  if (head === null || tail === null) return null;
  if (halves.length === 1) return head.length === GROUPS ? head : null;
  const missing = GROUPS - head.length - tail.length;
  return missing < 1 ? null : [...head, ...new Array<number>(missing).fill(0), ...tail];
}

function readGroups(text: string): number[] | null {
  if (text === '') return [];
  const groups: number[] = [];
  const parts = text.split(':');
  for (const [at, part] of parts.entries()) {
    if (at === parts.length - 1 && isIpv4(part)) {
      const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
      groups.push(a * 256 + b, c * 256 + d);
    } else if (/^[0-9a-f]{1,4}$/i.test(part)) {
      groups.push(Number.parseInt(part, 16));
    } else {
      return null;
    }
  }
  return groups;
}

/** `::ffff:0:0/96`, and the prefix of translators between IPv4 and IPv6 (RFC 6052): all clients of IPv4 have the same 56 bits. */
const IPV4_NETWORKS: readonly (readonly number[])[] = [
  [0, 0, 0, 0, 0, 0xffff],
  [0x64, 0xff9b, 0, 0, 0, 0],
];

function embeddedIpv4(groups: readonly number[]): string | null {
  if (!IPV4_NETWORKS.some((network) => network.every((group, at) => group === groups[at]))) return null;
  const [high = 0, low = 0] = groups.slice(6);
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

/** All groups of the network, without leading zeros and without `::`, so that one network has one text. */
function printNetwork(groups: readonly number[], prefix: number): string {
  return groups
    .map((group, at) => {
      const bits = Math.min(16, Math.max(0, prefix - 16 * at));
      return (group & (0xffff << (16 - bits)) & 0xffff).toString(16);
    })
    .join(':');
}
