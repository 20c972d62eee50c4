import { join } from 'node:path';
import { build } from 'esbuild';

interface Place {
  readonly table: string;
  readonly endpoint: string;
  readonly region: string;
}

/** Files that decide once when they are loaded: without the SDK, and with its client. */
export async function lambdaBundles(
  folder: string,
  { table, endpoint, region }: Place,
): Promise<{ readonly lean: string; readonly sdk: string }> {
  const [lean, sdk] = await Promise.all([
    bundle(folder, 'lean', '', `'dynamodb://${table}?region=${region}&endpoint=${endpoint}'`),
    bundle(
      folder,
      'sdk',
      `import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
       import { dynamodb } from 'headgate/dynamodb';`,
      `dynamodb({ table: '${table}', client: new DynamoDBClient({ region: '${region}', endpoint: '${endpoint}' }) })`,
    ),
  ]);
  return { lean, sdk };
}

async function bundle(folder: string, name: string, imports: string, store: string): Promise<string> {
  const outfile = join(folder, `${name}.cjs`);
  const contents = `${imports}
    import { Limit, RateLimiter } from 'headgate';
    const limits = [Limit.perHour('rph', 1_000_000)];
    export const first = RateLimiter.open(${store}, { limits }).then((limiter) =>
      limiter.tryAcquire({ entityId: 'cold', resource: '${name}', consume: { rph: 1 } }));`;
  await build({
    stdin: { contents, resolveDir: process.cwd() },
    bundle: true,
    minify: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20.19',
    external: ['libsql'],
    outfile,
    logLevel: 'error',
  });
  return outfile;
}
