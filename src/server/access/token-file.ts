import { type FileHandle, open, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { InfrastructureError, ValidationError } from '../../core/errors.js';
import { type AccessToken, createSecret, hashSecret, parseTokens } from './access-token.js';

/** The tokens of a file. Throws if the file does not exist. */
export async function readTokenFile(path: string): Promise<readonly AccessToken[]> {
  const text = await readText(path);
  if (text === null) throw new InfrastructureError('infrastructure.file', `There is no token file ${path}`);
  return parseTokens(text, path);
}

/** Adds a token to a file and returns its secret, which is stored nowhere. Creates the file, readable by its owner only. */
export async function addToken(path: string, token: Omit<AccessToken, 'sha256'>): Promise<string> {
  const secret = createSecret();
  await changeTokens(path, async () => {
    const before = await readTokens(path);
    if (before.some(({ name }) => name === token.name)) {
      throw new ValidationError('name', `a name that ${path} does not have yet`, token.name);
    }
    return [...before, { ...token, sha256: hashSecret(secret) }];
  });
  return secret;
}

/** Removes a token from a file. A running server keeps it until it is started again. */
export async function removeToken(path: string, name: string): Promise<void> {
  await changeTokens(path, async () => {
    const before = await readTokenFile(path);
    const after = before.filter((token) => token.name !== name);
    if (after.length === before.length) throw new ValidationError('name', `the name of a token in ${path}`, name);
    return after;
  });
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

/**
 * Writes a new file that then replaces the old one: a crash never leaves half a list. The new file is also the lock: it is
 * created before the old one is read, so that two changes at the same time never lose one of them. A link stays a link.
 */
async function changeTokens(path: string, change: () => Promise<readonly AccessToken[]>): Promise<void> {
  const target = await realpath(path).catch(() => path);
  const draft = `${target}.new`;
  const file = await lock(draft);
  try {
    try {
      const text = `${JSON.stringify(await change(), null, 2)}\n`;
      // The result is checked before it replaces the file.
      parseTokens(text, path);
      await file.writeFile(text);
      await keepAccess(target, file);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, target);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** The server may run as another user than the one who changes its tokens. */
async function keepAccess(path: string, file: FileHandle): Promise<void> {
  const before = await stat(path).catch(() => null);
  if (before === null) return;
  // Only root may give a file away. For other users it is theirs already, or stays theirs.
  await file.chown(before.uid, before.gid).catch(() => {});
  await file.chmod(before.mode & 0o777);
}

const LOCK_ATTEMPTS = 200;
const LOCK_PAUSE_MS = 25;

/** A lock of a process that was killed stays, as that of git does: only a person can tell whether the process still runs. */
async function lock(draft: string): Promise<FileHandle> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await open(draft, 'wx', 0o600);
    } catch (error) {
      if ((error as { readonly code?: string }).code !== 'EEXIST') {
        throw new InfrastructureError('infrastructure.file', `Cannot write ${draft}: ${String(error)}`, {
          cause: error,
        });
      }
      if (attempt >= LOCK_ATTEMPTS) {
        const advice = 'remove it if no other process changes the tokens';
        throw new InfrastructureError('infrastructure.file', `${draft} exists: ${advice}`, { cause: error });
      }
    }
    await new Promise((resolve) => setTimeout(resolve, LOCK_PAUSE_MS));
  }
}
