import type * as Sdk from '@aws-sdk/client-s3';
import { InfrastructureError, ValidationError } from '../../../../core/errors.js';
import { reasonOf } from '../../../../core/reason-of.js';
import type { Archive } from './archive.js';

/** Options of `s3Archive`. */
export interface S3ArchiveOptions {
  /** The name of the bucket. */
  readonly bucket: string;
  /** The caller's client. It is not closed here. */
  readonly client?: Sdk.S3Client;
  /** The region of the bucket. Default: that of the SDK. */
  readonly region?: string;
  /** The URL of S3. Default: that of the region. */
  readonly endpoint?: string;
}

/** An archive in an S3 bucket. The SDK is loaded by the first put, and retries failed requests. */
export function s3Archive({ bucket, client, ...config }: S3ArchiveOptions): Archive {
  if (typeof bucket !== 'string' || bucket === '') throw new ValidationError('bucket', 'the name of a bucket', bucket);
  let opened: Promise<{ readonly sdk: typeof Sdk; readonly s3: Sdk.S3Client }> | null = null;
  const open = async () => {
    const sdk = await loadSdk();
    return { sdk, s3: client ?? new sdk.S3Client(config) };
  };
  return {
    async check() {
      await loadSdk();
    },
    async put(key, bytes) {
      opened ??= open();
      const { sdk, s3 } = await opened.catch((error: unknown) => {
        opened = null;
        throw error;
      });
      const input = { Bucket: bucket, Key: key, Body: bytes, ContentType: 'application/gzip' };
      try {
        await s3.send(new sdk.PutObjectCommand(input));
      } catch (cause) {
        const reason = reasonOf(cause);
        throw new InfrastructureError('infrastructure.archive', `Cannot archive to ${bucket}: ${reason}`, { cause });
      }
    },
    close() {
      if (client === undefined) void opened?.then(({ s3 }) => s3.destroy()).catch(() => {});
    },
  };
}

async function loadSdk(): Promise<typeof Sdk> {
  try {
    return await import('@aws-sdk/client-s3');
  } catch (cause) {
    throw new InfrastructureError(
      'infrastructure.missing-peer',
      'An archive in S3 needs the AWS SDK. Run: npm install @aws-sdk/client-s3',
      { cause },
    );
  }
}
