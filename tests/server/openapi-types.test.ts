import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { buildOpenApi } from '../../src/server/openapi.js';
import { OPERATIONS } from '../../src/server/operations/index.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const TSC = join(ROOT, 'node_modules/typescript/bin/tsc');
const GENERATOR = new URL('../../tools/openapi/generate.js', import.meta.url).href;

/** Compares the client with the types of a document: see `Contract`. */
const CHECK = `import type { Contract } from '../../../tests/server/client-contract.js';
import type { operations } from './api.js';
type Checked = Contract<operations>;
`;

const REQUESTS = ['acquire', 'grant', 'denial', 'impossible', 'problem', 'peek', 'peeked', 'status', 'statuses'];
const LEASES = ['available', 'availables', 'settle', 'adjust', 'extend', 'release', 'commit', 'rollback', 'lease'];
const MEMBERS = [...REQUESTS, ...LEASES];

/** One line for each member, so that an error names the member that differs. */
const ASSIGNMENTS = MEMBERS.map((name) => `export const of_${name}: Checked['${name}'] = true;`).join('\n');

/** Generates the types of each document, and compiles them together with the client. Returns the members that differ. */
async function differences(documents: readonly object[]): Promise<readonly (readonly string[])[]> {
  const { generateTypes } = (await import(GENERATOR)) as { generateTypes(document: object): Promise<string> };
  mkdirSync(join(ROOT, '.tmp'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, '.tmp/openapi-'));
  try {
    for (const [at, document] of documents.entries()) {
      mkdirSync(join(folder, `d${at}`));
      writeFileSync(join(folder, `d${at}/api.ts`), await generateTypes(document));
      writeFileSync(join(folder, `d${at}/check.ts`), `${CHECK}${ASSIGNMENTS}\n`);
    }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ extends: '../../tsconfig.json', include: ['.'] }));
    const { stdout } = spawnSync(process.execPath, [TSC, '-p', folder, '--pretty', 'false'], { encoding: 'utf8' });
    const lines = stdout.split('\n').filter((line) => /^\S.*error TS/.test(line));
    const others = lines.filter((line) => !/d\d+\/check\.ts\(\d+/.test(line));
    expect(others).toEqual([]);
    return documents.map((_, at) =>
      lines.flatMap((line) => {
        const [, index, row] = /d(\d+)\/check\.ts\((\d+),/.exec(line) ?? [];
        return Number(index) === at ? [MEMBERS[Number(row) - CHECK.split('\n').length] ?? line] : [];
      }),
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A part of a document. */
interface Part {
  [name: string]: Part;
}

/** The document with changed paths. As JSON, because parts of it are the same object in several places. */
function changed(change: (paths: Part) => void): object {
  const document = JSON.parse(JSON.stringify(buildOpenApi(OPERATIONS, '1'))) as { readonly paths: Part };
  change(document.paths);
  return document;
}

function partAt(paths: Part, ...names: readonly string[]): Part {
  return names.reduce<Part>((part, name) => part[name] as Part, paths);
}

function sentIn(paths: Part, path: string): Part {
  return partAt(paths, path, 'post', 'requestBody', 'content', 'application/json', 'schema');
}

function answeredIn(paths: Part, path: string): Part {
  return partAt(paths, path, 'post', 'responses', '200', 'content', 'application/json', 'schema', 'properties');
}

test('the types that openapi-typescript generates are those of the client, and a change of one side shows where', async () => {
  const other = changed((paths) => {
    const asked = partAt(sentIn(paths, '/v1/acquire'), 'properties');
    Object.assign(asked, { hurry: { type: 'boolean' } });
    delete partAt(sentIn(paths, '/v1/peek'), 'properties')['priority'];
    const decidedBy = partAt(answeredIn(paths, '/v1/acquire'), 'decidedBy');
    Object.assign(decidedBy, { enum: ['store', 'nobody'] });
    const lease = partAt(answeredIn(paths, '/v1/leases/settle'), 'lease', 'properties');
    Object.assign(lease, { expiresAt: { type: 'number' } });
    Object.assign(sentIn(paths, '/v1/leases/extend'), { required: ['token', 'ttlMs'] });
    delete paths['/v1/available'];
  });
  const [own, changes] = await differences([buildOpenApi(OPERATIONS, '1'), other]);
  expect(own).toEqual([]);
  expect(changes).toEqual(['acquire', 'grant', 'peek', 'available', 'availables', 'extend', 'lease']);
});
