import { randomUUID } from 'node:crypto';
import { HeadgateError } from '../../../../core/errors.js';
import type { EpochMs } from '../../../../core/units.js';
import { askForProof, findMissingPart } from '../complete-answer.js';
import { type Deadline, timeLeftMs } from '../deadline.js';
import type { Environment } from '../loopback.js';
import { LostAnswer } from '../lost-answer.js';
import { StoreClock } from '../store-clock.js';
import type { Operation, Operations, Transport } from '../transport.js';
import { readAnswer } from './answer.js';
import { type ConnectionOptions, Connections, noConnection } from './connections.js';
import { CredentialCache } from './credentials.js';
import { post } from './post.js';
import type { SettingsPackages } from './provider-chain.js';
import { type GivenSettings, resolveSettings } from './settings.js';
import { type AwsCredentials, Signer, timestamp } from './sign.js';

export interface LeanInternals extends ConnectionOptions {
  readonly packages: SettingsPackages;
  readonly env?: Environment;
}

interface Opened {
  readonly host: string;
  readonly path: string;
  readonly signer: Signer;
  readonly credentials: CredentialCache;
  readonly connections: Connections;
}

const CONTENT_TYPE = 'application/x-amz-json-1.0';
const EXPIRED = new Set(['ExpiredTokenException', 'ExpiredToken']);

/** Signed JSON over connections that are kept open, without the AWS SDK. Each request is sent once. */
export function leanTransport(given: GivenSettings, internals: LeanInternals): Transport {
  const { packages, env = process.env, ...connectionOptions } = internals;
  const clock = new StoreClock();
  /** The offset by the last answer, for signatures only, until the clock is confirmed. */
  let doubtfulOffsetMs = 0;
  let opening: Promise<Opened> | null = null;
  let opened: Opened | null = null;

  const open = async (): Promise<Opened> => {
    const { region, endpoint, proxy, fetchCredentials } = await resolveSettings(given, env, packages);
    return {
      host: endpoint.host,
      path: endpoint.pathname,
      signer: new Signer(region, 'dynamodb'),
      credentials: new CredentialCache(fetchCredentials),
      connections: new Connections(endpoint, proxy, connectionOptions),
    };
  };
  const ready = async (): Promise<Opened> => {
    const started = (opening ??= open());
    try {
      const made = await started;
      if (opening === started) opened = made;
      return made;
    } catch (error) {
      if (opening === started) opening = null;
      throw error;
    }
  };
  const signingTimeMs = (): EpochMs => clock.now() ?? Date.now() + doubtfulOffsetMs;

  return {
    async load() {
      await ready().catch((error: unknown) => {
        // Other failures are those of the first request, which is classified and names the table.
        if (error instanceof HeadgateError) throw error;
      });
    },
    async send<Op extends Operation>(operation: Op, input: Operations[Op][0], deadline: Deadline) {
      const { host, path, signer, credentials, connections } = opened ?? (await before(deadline, ready()));
      const taken = credentials.take(signingTimeMs());
      const keys = taken instanceof Promise ? await before(deadline, taken) : taken;
      const asked = withToken(operation, askForProof(operation, input));
      const body = JSON.stringify(asked);
      const atTime = timestamp(signingTimeMs());
      const headers = signedHeaders(operation, host, atTime, keys);
      const authorization = signer.authorize({ method: 'POST', path, headers, body }, keys, atTime);
      const observe = clock.startRequest();
      const answer = await post(connections, rawHeaders(headers, authorization, body), body, deadline);
      const { date } = answer.headers;
      observe(date as string | undefined);
      if (clock.now() === null && typeof date === 'string') doubtfulOffsetMs = Date.parse(date) - Date.now() || 0;
      try {
        const output = readAnswer(answer);
        const missing = findMissingPart(operation, asked, output);
        if (missing !== null) throw new LostAnswer(`the answer has no ${missing}`);
        return output;
      } catch (error) {
        if (error instanceof Error && EXPIRED.has(error.name)) credentials.refuse(keys);
        throw error;
      }
    },
    storeTimeMs: () => clock.now(),
    isTimeInDoubt: () => clock.isInDoubt,
    takeClockNews: () => clock.takeNews(),
    close() {
      const started = opening;
      opening = opened = null;
      void started?.then(({ connections }) => connections.close()).catch(() => {});
    },
  };
}

/** As the SDK does: a transaction that a proxy sends twice counts once, and both answers are of the first. */
function withToken<Input extends object>(operation: Operation, input: Input): Input {
  return operation === 'TransactWriteItems' ? { ClientRequestToken: randomUUID(), ...input } : input;
}

/** In the order of the names' characters, as the signature requires. */
function signedHeaders(operation: Operation, host: string, atTime: string, { sessionToken }: AwsCredentials) {
  const headers: [string, string][] = [
    ['content-type', CONTENT_TYPE],
    ['host', host],
    ['x-amz-date', atTime],
  ];
  if (sessionToken !== undefined) headers.push(['x-amz-security-token', sessionToken]);
  headers.push(['x-amz-target', `DynamoDB_20120810.${operation}`]);
  return headers;
}

function rawHeaders(signed: readonly (readonly [string, string])[], authorization: string, body: string): string[] {
  const length = String(Buffer.byteLength(body));
  return [...signed.flat(), 'authorization', authorization, 'content-length', length, 'user-agent', 'headgate'];
}

/** Ends at the deadline: nothing was sent by then. */
async function before<T>(deadline: Deadline, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(noConnection('before its deadline')), Math.max(1, Math.ceil(timeLeftMs(deadline))));
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
