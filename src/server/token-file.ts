import { readFile, rename, writeFile } from 'node:fs/promises';
import { InfrastructureError, ValidationError } from '../core/errors.js';
import { type AccessToken, createSecret, hashSecret, parseTokens } from './access-token.js';

/** The tokens of a file. Throws if the file does not exist. */
export async function readTokenFile(path: string): Promise<readonly AccessToken[]> {
  const text = await readText(path);
  if (text === null) throw new InfrastructureError('infrastructure.file', `There is no token file ${path}`);
  return parseTokens(text, path);
}

/** Adds a token to a file and returns its secret, which is stored nowhere. Creates the file, readable by its owner only. */
export async function addToken(path: string, token: Omit<AccessToken, 'sha256'>): Promise<string> {
  const before = await readTokens(path);
  if (before.some(({ name }) => name === token.name)) {
    throw new ValidationError('name', `a name that ${path} does not have yet`, token.name);
  }
  const secret = createSecret();
  await writeTokens(path, [...before, { ...token, sha256: hashSecret(secret) }]);
  return secret;
}

/** Removes a token from a file. A running server keeps it until it is started again. */
export async function removeToken(path: string, name: string): Promise<void> {
  const before = await readTokenFile(path);
  const after = before.filter((token) => token.name !== name);
  if (after.length === before.length) {
    throw new ValidationError('name', `the name of a token in ${path}`, name);
  }
  await writeTokens(path, after);
}

async function readTokens(path: string): Promise<readonly AccessToken[]> {
  const text = await readText(path);
  return text === null ? [] : parseTokens(text, path);
}

/** null: there is no such file. */
async function readText(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as { readonly code?: string }).code === 'ENOENT') return null;
    throw new InfrastructureError('infrastructure.file', `Cannot read ${path}: ${String(error)}`, { cause: error });
  }
}

/** Written to a new file that then replaces the old one: a crash never leaves half a list. */
async function writeTokens(path: string, tokens: readonly AccessToken[]): Promise<void> {
  // The result is checked before it replaces the file.
  const text = `${JSON.stringify(tokens, null, 2)}\n`;
  parseTokens(text, path);
  const draft = `${path}.new`;
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, path);
}
