import { expect, test } from 'vitest';
import { proxyAuthorization, proxyOf } from './proxy.js';

const HTTPS = new URL('https://dynamodb.eu-west-1.amazonaws.com');
const HTTP = new URL('http://dynamodb.internal:8000');
const ENV = { HTTPS_PROXY: 'http://secure:3128', HTTP_PROXY: 'http://plain:3128' };

test('the scheme of the endpoint selects the proxy, and small letters take precedence', () => {
  expect(proxyOf(HTTPS, ENV)?.host).toBe('secure:3128');
  expect(proxyOf(HTTP, ENV)?.host).toBe('plain:3128');
  expect(proxyOf(HTTPS, { ...ENV, https_proxy: 'http://small:1' })?.host).toBe('small:1');
  expect(proxyOf(HTTPS, { HTTPS_PROXY: 'bare:3128' })?.href).toBe('http://bare:3128/');
  expect(proxyOf(HTTPS, { HTTP_PROXY: 'http://plain:3128' })).toBeNull();
  expect(proxyOf(HTTPS, {})).toBeNull();
});

test.each(['http://127.0.0.1:8000', 'http://localhost:8000', 'http://[::1]:8000'])(
  'the endpoint %s on this machine has no proxy',
  (endpoint) => {
    expect(proxyOf(new URL(endpoint), ENV)).toBeNull();
  },
);

test.each([
  ['*', true],
  ['amazonaws.com', true],
  ['.amazonaws.com', true],
  ['*.amazonaws.com', true],
  ['other.example, AMAZONAWS.COM', true],
  ['other.example dynamodb.eu-west-1.amazonaws.com', true],
  ['amazonaws.com:443', true],
  ['amazonaws.com:8443', false],
  ['azonaws.com', false],
  ['dynamodb', false],
  ['', false],
  [',', false],
])('NO_PROXY=%s excepts the endpoint of a region: %s', (exceptions, isExcepted) => {
  expect(proxyOf(HTTPS, { ...ENV, NO_PROXY: exceptions }) === null).toBe(isExcepted);
  expect(proxyOf(HTTPS, { ...ENV, no_proxy: exceptions, NO_PROXY: '' }) === null).toBe(isExcepted);
});

test.each([
  ['2001:db8::1', true],
  ['[2001:db8::1]', true],
  ['[2001:db8::1]:8443', true],
  ['[2001:db8::1]:443', false],
  ['2001:db8::2', false],
  ['2001:db8:', false],
])('NO_PROXY=%s excepts an IPv6 address: %s', (exceptions, isExcepted) => {
  const endpoint = new URL('https://[2001:db8::1]:8443');
  expect(proxyOf(endpoint, { ...ENV, NO_PROXY: exceptions }) === null).toBe(isExcepted);
});

test.each([
  'socks5://ann:secret@proxy:1080',
  'http://ann:secret@:x',
  'http://ann:secret100%@proxy',
  'http://ann%zz:secret@proxy',
  'http://ann:secret%ff@proxy',
])('the proxy %s is refused, and the message does not contain its password', (given) => {
  const refuse = () => proxyOf(HTTPS, { HTTPS_PROXY: given });
  expect(refuse).toThrow('Expected HTTPS_PROXY to be a URL like http://proxy:3128');
  expect(refuse).not.toThrow('secret');
});

test('the user and the password of a proxy are decoded', () => {
  expect(proxyAuthorization(new URL('http://proxy'))).toBeUndefined();
  const header = proxyAuthorization(new URL('http://ann:p%40ss@proxy')) ?? '';
  expect(Buffer.from(header.replace('Basic ', ''), 'base64').toString()).toBe('ann:p@ss');
});
