import { readFile } from 'node:fs/promises';
import { HeadgateError, ValidationError } from '../../core/errors.js';
import { findProblems, type ManifestData } from '../../core/manifest/manifest.js';
import { type ManifestProblem, ROOT } from '../../core/manifest/problems.js';
import { parseYaml, type Place, type YamlData, YamlError } from './yaml-data.js';

/** A limits file that passed every check that needs no store. */
export interface ManifestFile {
  readonly data: ManifestData;
  /** The namespace of the file. Throws if `named` is another one. */
  namespaceFor(named: string | undefined): string;
  /** Adds the place in the file to an error about its content. Returns other errors unchanged. */
  explain(error: unknown): unknown;
}

/** What is wrong with a limits file: `limits.yaml:7:12: entities.user-1.parent: expected ..., got ...`. */
export class ManifestFileError extends HeadgateError<'input.invalid'> {
  readonly file: string;
  readonly field: string | null;
  readonly line: number | null;
  readonly column: number | null;

  constructor(file: string, message: string, where: { readonly field?: string; readonly place?: Place | undefined }) {
    const { field, place } = where;
    const parts = [place === undefined ? file : `${file}:${place.line}:${place.column}`, field ?? '', message];
    super('input.invalid', parts.filter((part) => part !== '').join(': '));
    this.file = file;
    this.field = field ?? null;
    this.line = place?.line ?? null;
    this.column = place?.column ?? null;
  }
}

/** Far more than any real limits file: a larger file is a mistake. */
const MAX_BYTES = 64 * 1024 * 1024;

const STDIN = '-';

/** `-` is standard input. */
export async function readManifestFile(path: string, stdin: AsyncIterable<Uint8Array>): Promise<ManifestFile> {
  const name = path === STDIN ? 'stdin' : path;
  return parseManifestFile(path === STDIN ? await readAll(stdin, name) : await readBytes(path), name);
}

async function readBytes(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (error) {
    const { code } = error as { readonly code?: string };
    const reason = { ENOENT: 'there is no such file', EISDIR: 'it is a folder', EACCES: 'access is denied' }[
      code ?? ''
    ];
    throw new ManifestFileError(path, `cannot be read: ${reason ?? String(code ?? error)}`, {});
  }
}

async function readAll(stdin: AsyncIterable<Uint8Array>, name: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_BYTES) checkSize(bytes, name);
  }
  return Buffer.concat(chunks);
}

/** Checks everything that can be checked without a store. */
export function parseManifestFile(bytes: Uint8Array, name: string): ManifestFile {
  checkSize(bytes.length, name);
  const yaml = parseBytes(bytes, name);
  refuseProblems(name, yaml, findProblems(yaml.data));
  const data = yaml.data as ManifestData;
  return {
    data,
    namespaceFor: (named) => {
      if (named === undefined || named === data.namespace) return data.namespace;
      const message = `expected ${named}, which --namespace says, got ${JSON.stringify(data.namespace)}`;
      throw new ManifestFileError(name, message, { field: 'namespace', place: yaml.locate('namespace', 'value') });
    },
    explain: (error) => (error instanceof ValidationError ? locateError(name, yaml, error) : error),
  };
}

function checkSize(bytes: number, name: string): void {
  if (bytes > MAX_BYTES) throw new ManifestFileError(name, `expected at most ${MAX_BYTES} bytes`, {});
}

function parseBytes(bytes: Uint8Array, name: string): YamlData {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new ManifestFileError(name, 'expected text in UTF-8, got other bytes', {});
  }
  try {
    return parseYaml(text);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    throw new ManifestFileError(name, error.message, { field: error.path, place: error.place });
  }
}

/** The problem that comes first in the text. */
function refuseProblems(file: string, yaml: YamlData, problems: readonly ManifestProblem[]): void {
  const placed = problems.map((problem) => ({ ...problem, place: placeOf(yaml, problem.path, problem.at) }));
  const [first] = placed.toSorted((a, b) => a.place.line - b.place.line || a.place.column - b.place.column);
  if (first === undefined) return;
  const { path: field, place } = first;
  const { expected, got } = new ValidationError(field, first.expected, first.got);
  const more = problems.length - 1;
  const others = more === 0 ? '' : ` (and ${more} more ${more === 1 ? 'problem' : 'problems'})`;
  throw new ManifestFileError(file, `expected ${expected}, got ${got}${others}`, { field, place });
}

/** An error that only the store can find, for example a parent that does not exist. */
function locateError(file: string, yaml: YamlData, { field, expected, got, message }: ValidationError): Error {
  const [others = ''] = / \(and \d+ more problems?\)$/.exec(message) ?? [];
  const place = yaml.locate(field, 'value');
  return new ManifestFileError(file, `expected ${expected}, got ${got}${others}`, { field, place });
}

/** A missing field has the place of its parent, and so has a field that an alias repeats. */
function placeOf(yaml: YamlData, path: string, at: 'key' | 'value'): Place {
  const place = yaml.locate(path, at) ?? (path === ROOT ? { line: 1, column: 1 } : undefined);
  return place ?? placeOf(yaml, parentOf(path), 'value');
}

/** `a.b[0]` is in `a.b`, `a["b.c"]` in `a`, `a` in the root. */
function parentOf(path: string): string {
  const parent = path.replace(/(?:\.[\w-]+|\[(?:\d+|"(?:[^"\\]|\\.)*")\])$/, '');
  return parent === path ? ROOT : parent;
}
