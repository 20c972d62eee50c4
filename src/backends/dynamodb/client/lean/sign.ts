import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';

/** Keys of AWS, as the SDK's providers return them. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

/** What a signature covers. */
export interface Signable {
  readonly method: string;
  /** As it is sent: percent-encoded once, without a query. */
  readonly path: string;
  /** Names in lower case and in the order of their characters, each followed by its value. */
  readonly headers: readonly string[];
  readonly body: string;
}

const ALGORITHM = 'AWS4-HMAC-SHA256';

interface DerivedKey {
  readonly of: AwsCredentials;
  readonly day: string;
  readonly scope: string;
  readonly key: KeyObject;
}

/**
 * Signature Version 4 (https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html). The key that is
 * derived for a day is cached: deriving it takes four of the five HMACs of a signature.
 */
export class Signer {
  readonly #region: string;
  readonly #service: string;
  #derived: DerivedKey | null = null;

  constructor(region: string, service: string) {
    this.#region = region;
    this.#service = service;
  }

  /** The value of the header `Authorization`. `atTime` is the value of `X-Amz-Date`, which must be among the headers. */
  authorize(request: Signable, credentials: AwsCredentials, atTime: string): string {
    const { scope, key } = this.#derive(credentials, atTime.slice(0, 8));
    let headerLines = '';
    let names = '';
    for (let at = 0; at < request.headers.length; at += 2) {
      const name = request.headers[at] ?? '';
      headerLines += `${name}:${request.headers[at + 1] ?? ''}\n`;
      names += names === '' ? name : `;${name}`;
    }
    const canonical = `${request.method}\n${canonicalPath(request.path)}\n\n${headerLines}\n${names}\n${sha256(request.body)}`;
    const text = `${ALGORITHM}\n${atTime}\n${scope}\n${sha256(canonical)}`;
    const signature = createHmac('sha256', key).update(text).digest('hex');
    return `${ALGORITHM} Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  }

  #derive(of: AwsCredentials, day: string): DerivedKey {
    if (this.#derived?.of === of && this.#derived.day === day) return this.#derived;
    const parts = [day, this.#region, this.#service, 'aws4_request'];
    let key: Buffer = Buffer.from(`AWS4${of.secretAccessKey}`);
    for (const part of parts) key = createHmac('sha256', key).update(part).digest();
    return (this.#derived = { of, day, scope: parts.join('/'), key: createSecretKey(key) });
  }
}

/** A cache of one entry: the requests of one second have the same timestamp. */
let lastTimestamp = { second: Number.NaN, text: '' };

/** `20270115T080000Z`: the form of `X-Amz-Date`. */
export function timestamp(atMs: number): string {
  const second = Math.floor(atMs / 1_000);
  if (second !== lastTimestamp.second) {
    lastTimestamp = { second, text: `${new Date(atMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z` };
  }
  return lastTimestamp.text;
}

/** Each segment is encoded once more: AWS does so for every service but S3. */
function canonicalPath(path: string): string {
  return path === '/' ? path : path.split('/').map(encodeSegment).join('/');
}

/** `encodeURIComponent` leaves characters that RFC 3986 reserves. */
function encodeSegment(segment: string): string {
  const encoded = encodeURIComponent(segment);
  return encoded.replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}

function sha256(text: string): string {
  return hash('sha256', text, 'hex');
}
