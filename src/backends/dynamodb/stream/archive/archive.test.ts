import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { S3Client } from '@aws-sdk/client-s3';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { folderArchive } from './folder-archive.js';
import { s3Archive } from './s3-archive.js';
import { runWorker } from '../worker/worker.js';

const KEY = 'audit/namespace=ns/year=2027/month=01/day=15/event.jsonl.gz';

describe('a folder archive', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'headgate-archive-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test('a folder archive keeps only the last bytes under a key', async () => {
    const archive = folderArchive(join(folder, 'made'));
    await archive.put(KEY, Buffer.from('first'));
    await archive.put(KEY, Buffer.from('second'));
    expect(readFileSync(join(folder, 'made', KEY), 'utf8')).toBe('second');
    expect(readdirSync(join(folder, 'made', KEY, '..'))).toEqual(['event.jsonl.gz']);
  });

  test('a folder archive refuses a key outside of its folder', async () => {
    const archive = folderArchive(join(folder, 'made'));
    await expect(archive.put('../out', Buffer.from('x'))).rejects.toThrow('a path inside of the archive');
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe('an S3 archive', () => {
  const put = async (status: number) => {
    const seen: { method: string | undefined; url: string | undefined; body: string }[] = [];
    const server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        seen.push({ method: request.method, url: request.url, body: Buffer.concat(parts).toString() });
        response.writeHead(status).end();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const client = new S3Client({
      endpoint: `http://127.0.0.1:${port}`,
      region: 'us-east-1',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
      forcePathStyle: true,
      maxAttempts: 1,
    });
    try {
      await s3Archive({ bucket: 'my-archive', client }).put(KEY, Buffer.from('a line'));
    } finally {
      client.destroy();
      await new Promise((resolve) => server.close(resolve));
    }
    return seen;
  };

  test('an S3 archive puts the bytes under the key', async () => {
    const [{ method, url, body } = {}] = await put(200);
    expect(method).toBe('PUT');
    expect(decodeURIComponent(url ?? '')).toContain(`/my-archive/${KEY}`);
    expect(body).toContain('a line');
  });

  test('an S3 archive rejects with the name of the bucket if a put fails', async () => {
    await expect(put(403)).rejects.toMatchObject({
      code: 'infrastructure.archive',
      message: expect.stringContaining('Cannot archive to my-archive'),
    });
  });

  test('an S3 archive without the SDK names the package to install, on every call', async () => {
    vi.doMock('@aws-sdk/client-s3', () => {
      throw new Error('Cannot find package');
    });
    const archive = s3Archive({ bucket: 'my-archive' });
    const keep = async (): Promise<void> => archive.put(KEY, Buffer.from('a line'));
    const start = async (): Promise<void> => runWorker({ table: 'limits', archive });
    for (const ask of [keep, keep, start]) {
      await expect(ask()).rejects.toMatchObject({
        code: 'infrastructure.missing-peer',
        message: 'An archive in S3 needs the AWS SDK. Run: npm install @aws-sdk/client-s3',
      });
    }
    vi.doUnmock('@aws-sdk/client-s3');
  });
});
