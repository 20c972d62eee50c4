import { accessSync, constants, mkdtempSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { tmpdir } from 'node:os';
import { freePort } from '../../src/local/engine/free-port.js';
import { supervised } from '../../src/testing/dynamodb/supervised.js';

/** moto's server, which has CloudFormation, Lambda and DynamoDB. It needs Python. */
const program = findMoto();
export const MOTO = {
  missing: program === null,
  note: program === null ? ' (skipped: no moto_server on the PATH, nor named by HEADGATE_MOTO)' : '',
};

function findMoto(): string | null {
  const { HEADGATE_MOTO, PATH = '' } = process.env;
  const places =
    HEADGATE_MOTO === undefined ? PATH.split(delimiter).map((folder) => join(folder, 'moto_server')) : [HEADGATE_MOTO];
  return places.find(isProgram) ?? null;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const START_MS = 30_000;

/** Starts the server on a free port. It ends with this process, also after kill -9. */
export async function startMoto(): Promise<{ readonly endpoint: string; readonly stop: () => Promise<void> }> {
  if (program === null) throw new Error(`There is no moto${MOTO.note}`);
  const port = await freePort();
  const { kill } = await supervised({
    command: program,
    args: ['-H', '127.0.0.1', '-p', String(port)],
    environment: { PYTHONUNBUFFERED: '1' },
    folder: mkdtempSync(join(tmpdir(), 'headgate-moto-')),
    readyLine: 'Running on',
    signal: AbortSignal.timeout(START_MS),
  });
  return { endpoint: `http://127.0.0.1:${port}`, stop: kill };
}
