import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';
import type { EpochMs } from '../../../../core/units.js';

/** Keys of AWS, as the SDK's providers return them. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

/** What signatures cover beside the body. */
export interface Signable {
  readonly method: string;
  /** As it is sent: percent-encoded once, without a query. */
  readonly path: string;
  /** Names in lower case and in the order of their characters, each followed by its value. */
  readonly headers: readonly string[];
}

/** What requests that differ only in their body have in common. */
export interface Signing {
  /** The value of the header `Authorization` up to the signature. */
  readonly start: string;
  readonly sign: (body: string) => string;
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

  /** `atTime` is the value of `X-Amz-Date`, which must be among the headers. */
  prepare(request: Signable, credentials: AwsCredentials, atTime: string): Signing {
    const { scope, key } = this.#derive(credentials, atTime.slice(0, 8));
    let headerLines = '';
    let names = '';
    for (let at = 0; at < request.headers.length; at += 2) {
      const name = request.headers[at] ?? '';
      headerLines += `${name}:${request.headers[at + 1] ?? ''}\n`;
      names += names === '' ? name : `;${name}`;
    }
    const canonical = `${request.method}\n${canonicalPath(request.path)}\n\n${headerLines}\n${names}\n`;
    const signed = `${ALGORITHM}\n${atTime}\n${scope}\n`;
    return {
      start: `${ALGORITHM} Credential=${credentials.accessKeyId}/${scope}, SignedHeaders=${names}, Signature=`,
      sign: (body) => {
        const text = `${signed}${sha256(`${canonical}${sha256(body)}`)}`;
        return createHmac('sha256', key).update(text).digest('hex');
      },
    };
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

/** How long before they expire credentials are fetched again, while the old ones are still used. */
const RENEW_MS = 5 * 60_000;

/** How long before they expire credentials are no longer used: a signature must still be valid when it arrives. */
const UNUSABLE_MS = 10_000;

/** The pause after a failed renewal, while the old credentials are still used. */
const RETRY_MS = 30_000;

/** How long a provider may take. One that never answers must not block every later request. */
const FETCH_MS = 30_000;

/** `renewed`: the last ones were refused, so that cached ones must not be returned. */
export type FetchCredentials = (renewed: boolean) => Promise<AwsCredentials>;

/** Credentials, fetched when they are needed and shortly before they expire. One fetch is in flight at most. */
export class CredentialCache {
  readonly #fetch: FetchCredentials;
  #current: AwsCredentials | null = null;
  #fetching: Promise<AwsCredentials> | null = null;
  #isRefused = false;
  #nextRenewalMs = 0;

  constructor(fetch: FetchCredentials) {
    this.#fetch = fetch;
  }

  /** Returns a plain value while it has usable credentials. */
  take(nowMs: EpochMs): AwsCredentials | Promise<AwsCredentials> {
    const current = this.#current;
    const expiresAtMs = current?.expiration?.getTime() ?? Number.POSITIVE_INFINITY;
    if (current === null || nowMs >= expiresAtMs - UNUSABLE_MS) return this.#renew();
    if (nowMs >= expiresAtMs - RENEW_MS && nowMs >= this.#nextRenewalMs) {
      this.#nextRenewalMs = nowMs + RETRY_MS;
      // The old ones are still good. A failure shows when they are not.
      this.#renew().catch(() => {});
    }
    return current;
  }

  /** Called if DynamoDB says that the credentials have expired: the next request fetches new ones. */
  refuse(credentials: AwsCredentials): void {
    if (this.#current !== credentials) return;
    this.#current = null;
    this.#isRefused = true;
  }

  #renew(): Promise<AwsCredentials> {
    this.#fetching ??= inTime(this.#fetchOnce()).finally(() => (this.#fetching = null));
    return this.#fetching;
  }

  async #fetchOnce(): Promise<AwsCredentials> {
    const fetched = await this.#fetch(this.#isRefused);
    this.#isRefused = false;
    return (this.#current = fetched);
  }
}

async function inTime(fetched: Promise<AwsCredentials>): Promise<AwsCredentials> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const error = new Error(`The provider of AWS credentials gave no answer within ${FETCH_MS} ms`);
      reject(Object.assign(error, { name: 'CredentialsProviderError' }));
    }, FETCH_MS);
    timer.unref();
  });
  try {
    return await Promise.race([fetched, tooLate]);
  } finally {
    clearTimeout(timer);
  }
}
