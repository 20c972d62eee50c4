import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { type PageName, PAGES } from '../model/route.js';
import type { SessionView } from '../api/types.js';
import { route, setParams } from '../state/router.js';
import { namespaces, signOut } from '../state/session.js';
import { live } from '../state/live.js';
import { Link } from './link.js';

const titleOf = (page: PageName): string => page.charAt(0).toUpperCase() + page.slice(1);

/** The pages that each role may read. */
export const PAGES_OF: Readonly<Record<'app' | 'admin', readonly PageName[]>> = {
  admin: PAGES,
  app: ['overview', 'entity', 'usage', 'try'],
};

function LiveBadge() {
  const state = live.value;
  return (
    <span
      class={`live ${state.kind === 'not connected' ? 'off' : state.kind === 'connecting' ? 'wait' : 'on'}`}
      role="status"
    >
      <i class="dot" aria-hidden="true" />
      {state.kind === 'polling' ? 'live, by polling' : state.kind}
    </span>
  );
}

function Access({ view }: { readonly view: SessionView }) {
  const known = namespaces.value;
  const names = [...new Set([view.namespace, ...(known?.items ?? [])])];
  return (
    <div class="access">
      {known === null ? <span class="tag warn">other namespaces could not be read</span> : null}
      {known?.hasMore === true ? <span class="tag warn">the first {known.items.length} namespaces</span> : null}
      <label>
        <span class="muted">Namespace</span>{' '}
        {names.length > 1 ? (
          <select value={view.namespace} onChange={(event) => setParams({ namespace: event.currentTarget.value })}>
            {names.toSorted().map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        ) : (
          view.namespace
        )}
      </label>
      {view.token === null ? null : (
        <>
          <span
            class="muted"
            title={view.entityPrefix === null ? undefined : `For entities that begin with ${view.entityPrefix}`}
          >
            {view.token} ({view.role})
          </span>
          <button type="button" class="small" onClick={signOut}>
            Sign out
          </button>
        </>
      )}
    </div>
  );
}

interface ShellProps {
  readonly page: PageName;
  readonly view: SessionView;
  readonly refusedNamespace: string | null;
  /** The reader has typed a token: the focus was in a form that is gone. */
  readonly isAfterSignIn: boolean;
  readonly children: ComponentChildren;
}

/** What surrounds every page: the links, the state of the connection, and who is signed in. */
export function Shell({ page, view, refusedNamespace, isAfterSignIn, children }: ShellProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const isFirst = useRef(!isAfterSignIn);
  const { id = '', entity = '', name = '' } = route.value.params;
  const subject = id || entity || name;
  useEffect(() => {
    document.title = `${subject === '' ? '' : `${subject} · `}${titleOf(page)} · Headgate`;
  }, [page, subject]);
  useEffect(() => {
    // A screen reader starts at the new page after a link was followed, but not when the document was loaded.
    if (!isFirst.current) heading.current?.focus();
    isFirst.current = false;
  }, [page, id]);
  return (
    <div class="shell">
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <Link to="overview" class="brand">
          Headgate
        </Link>
        <LiveBadge />
        <span class="grow" />
        <Access view={view} />
      </header>
      <nav aria-label="Pages">
        {PAGES_OF[view.role].map((one) => (
          <Link key={one} to={one} current={one === page}>
            {titleOf(one)}
          </Link>
        ))}
      </nav>
      <main id="main">
        <h1 ref={heading} tabIndex={-1}>
          {titleOf(page)}
        </h1>
        {refusedNamespace === null ? null : (
          <p class="notice warn">
            The namespace {refusedNamespace} does not exist, or this token does not cover it. This is {view.namespace}.
          </p>
        )}
        {live.value.kind === 'not connected' ? (
          <p class="notice" role="status">
            Not connected to the events of this server ({live.value.why}).{' '}
            {live.value.isFinal ? 'Load the page to try again.' : 'Trying again.'}
          </p>
        ) : null}
        {children}
      </main>
    </div>
  );
}
