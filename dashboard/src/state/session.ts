import { computed, signal } from '@preact/signals';
import { Api, ApiError, messageOf } from '../api/http.js';
import type { Page, SessionView } from '../api/types.js';

const TOKEN_KEY = 'headgate-token';
const NAMESPACE_KEY = 'headgate-namespace';

/** Who uses the page. */
export type SessionState =
  | { readonly kind: 'starting' }
  | { readonly kind: 'signed out'; readonly problem: string | null }
  | { readonly kind: 'failed'; readonly problem: string }
  | { readonly kind: 'signed in'; readonly view: SessionView; readonly namespaces: readonly string[] };

export const session = signal<SessionState>({ kind: 'starting' });
const access = signal<{ readonly token: string | null; readonly namespace: string | null }>({
  token: null,
  namespace: null,
});
export const api = computed(() => new Api(access.value.token, access.value.namespace));

/** Session storage ends with the tab. It may be forbidden: then the token is kept in memory only. */
function remember(key: string, value: string | null): void {
  try {
    if (value === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, value);
  } catch {
    // The page works without it.
  }
}

function recall(key: string): string | null {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

export async function startSession(): Promise<void> {
  await open(recall(TOKEN_KEY), recall(NAMESPACE_KEY), null);
}

export async function signIn(token: string): Promise<void> {
  await open(token, null, 'The server does not know this token.');
}

export function signOut(): void {
  remember(TOKEN_KEY, null);
  remember(NAMESPACE_KEY, null);
  access.value = { token: null, namespace: null };
  session.value = { kind: 'signed out', problem: null };
}

export async function chooseNamespace(namespace: string): Promise<void> {
  await open(access.peek().token, namespace, null);
}

async function open(token: string | null, namespace: string | null, refused: string | null): Promise<void> {
  const asking = new Api(token, namespace);
  try {
    const view = await asking.get<SessionView>('/v1/session');
    const canList = view.everyNamespace && view.role === 'admin';
    const names = canList ? (await asking.get<Page<{ name: string }>>('/v1/namespaces', { limit: '1000' })).items : [];
    remember(TOKEN_KEY, token);
    remember(NAMESPACE_KEY, namespace);
    access.value = { token, namespace };
    session.value = { kind: 'signed in', view, namespaces: names.map(({ name }) => name) };
  } catch (error) {
    const status = error instanceof ApiError ? error.status : 0;
    if (status === 401) session.value = { kind: 'signed out', problem: refused };
    else if (status === 403 && namespace !== null) await open(token, null, refused);
    else session.value = { kind: 'failed', problem: messageOf(error) };
  }
}
