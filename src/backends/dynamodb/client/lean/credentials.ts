import type { EpochMs } from '../../../../core/units.js';
import type { Environment } from '../loopback.js';
import type { AwsCredentials } from './sign.js';

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

/** null: the environment has none. */
export function environmentCredentials(env: Environment): AwsCredentials | null {
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  if (!accessKeyId || !secretAccessKey) return null;
  const expiration = env['AWS_CREDENTIAL_EXPIRATION'];
  return {
    accessKeyId,
    secretAccessKey,
    ...(env['AWS_SESSION_TOKEN'] ? { sessionToken: env['AWS_SESSION_TOKEN'] } : {}),
    ...(expiration ? { expiration: new Date(expiration) } : {}),
  };
}
