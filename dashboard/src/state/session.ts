import { computed, effect, signal } from '@preact/signals';
import { Api, ApiError, messageOf, readPages } from '../api/http.js';
import type { SessionView } from '../api/types.js';
import { namespace, setParams } from './router.js';

const TOKEN_KEY = 'headgate-token';

/** Who uses the page. */
export type SessionState =
  | { readonly kind: 'starting' }
  | { readonly kind: 'signed out'; readonly problem: string | null }
  | { readonly kind: 'failed'; readonly problem: string }
  /** `refusedNamespace`: the address named it, but it does not exist, or the token does not cover it. */
  | { readonly kind: 'signed in'; readonly view: SessionView; readonly refusedNamespace: string | null };

export const session = signal<SessionState>({ kind: 'starting' });
const MOST_NAMESPACES = 5_000;

interface Namespaces {
  readonly items: readonly string[];
  /** These are not all. */
  readonly hasMore: boolean;
}

/** Of a token that covers one namespace. */
const NO_CHOICE: Namespaces = { items: [], hasMore: false };

/** The namespaces that the reader may choose; null: they could not be read. */
export const namespaces = signal<Namespaces | null>(NO_CHOICE);
const access = signal<{ readonly token: string | null; readonly namespace: string | null }>({
  token: null,
  namespace: null,
});
export const api = computed(() => new Api(access.value.token, access.value.namespace));

/** Grows with each change of the session that the reader asks for: the answer to an earlier one is too late. */
let turn = 0;

/** Session storage ends with the tab. It may be forbidden: then the token is kept in memory only. */
function remember(token: string | null): void {
  try {
    if (token === null) sessionStorage.removeItem(TOKEN_KEY);
    else sessionStorage.setItem(TOKEN_KEY, token);
  } catch {
    // The page works without it.
  }
}

function recall(): string | null {
  try {
    return sessionStorage.getItem(TOKEN_KEY);
  } catch {
    return null;
  }
}

export async function openSession(): Promise<void> {
  await open(access.peek().token ?? recall());
}

/** Opens the session, and again when the address names another namespace. */
export function startSession(): void {
  effect(() => {
    if (access.peek().namespace !== namespace.value || session.peek().kind === 'starting') void openSession();
  });
}

export async function signIn(token: string): Promise<void> {
  await open(token, { isTyped: true });
}

export function signOut(): void {
  turn += 1;
  remember(null);
  access.value = { token: null, namespace: null };
  session.value = { kind: 'signed out', problem: null };
}

interface Opening {
  /** The form of the sign-in stays until the token was accepted. */
  readonly isTyped?: boolean;
  readonly refusedNamespace?: string | null;
}

async function open(token: string | null, opening: Opening = {}): Promise<void> {
  const { isTyped = false, refusedNamespace = null } = opening;
  const asked = namespace.peek();
  const asking = new Api(token, asked);
  turn += 1;
  const ownTurn = turn;
  try {
    const view = await asking.get<SessionView>('/v1/session');
    if (turn !== ownTurn) return;
    remember(token);
    access.value = { token, namespace: asked };
    session.value = { kind: 'signed in', view, refusedNamespace };
    const names = view.everyNamespace && view.role === 'admin' ? await readNames(asking) : NO_CHOICE;
    if (turn === ownTurn) namespaces.value = names;
  } catch (error) {
    if (turn !== ownTurn) return;
    const status = error instanceof ApiError ? error.status : 0;
    if ((status === 403 || status === 404) && asked !== null) {
      setParams({ namespace: '' }, 'replace');
      await open(token, { isTyped, refusedNamespace: asked });
    } else if (status === 401) {
      session.value = { kind: 'signed out', problem: isTyped ? 'The server does not know this token.' : null };
    } else session.value = { kind: isTyped ? 'signed out' : 'failed', problem: messageOf(error) };
  }
}

/** In an outage the page opens without the list. */
async function readNames(from: Api): Promise<Namespaces | null> {
  try {
    const { items, hasMore } = await readPages<{ readonly name: string }>(
      (after) => from.get('/v1/namespaces', { limit: '1000', after }),
      MOST_NAMESPACES,
    );
    return { items: items.map(({ name }) => name), hasMore };
  } catch {
    return null;
  }
}
