import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { PageName } from '../model/route.js';
import type { SessionState } from '../state/session.js';
import { chooseNamespace, signOut } from '../state/session.js';
import { live } from '../state/live.js';
import { Link } from './link.js';

const TITLES: Readonly<Record<PageName, string>> = {
  overview: 'Overview',
  entity: 'Entity',
  usage: 'Usage',
  leases: 'Leases',
  limits: 'Limits',
  audit: 'Audit',
  try: 'Try',
};

/** The pages that each role may read. */
export const PAGES_OF: Readonly<Record<'app' | 'admin', readonly PageName[]>> = {
  admin: ['overview', 'entity', 'usage', 'leases', 'limits', 'audit', 'try'],
  app: ['overview', 'entity', 'usage', 'try'],
};

function LiveBadge() {
  const state = live.value;
  const texts = {
    connecting: 'connecting…',
    live: 'live',
    polling: 'live, by polling',
    'not connected': 'not connected',
  };
  return (
    <span
      class={`live ${state.kind === 'not connected' ? 'off' : state.kind === 'connecting' ? 'wait' : 'on'}`}
      role="status"
    >
      <i class="dot" aria-hidden="true" />
      {texts[state.kind]}
    </span>
  );
}

type SignedIn = Extract<SessionState, { readonly kind: 'signed in' }>;

function Access({ session: { view, namespaces } }: { readonly session: SignedIn }) {
  return (
    <div class="access">
      {namespaces.length > 1 ? (
        <select
          aria-label="Namespace"
          value={view.namespace}
          onChange={(event) => void chooseNamespace(event.currentTarget.value)}
        >
          {namespaces.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      ) : (
        <span class="muted" title="Namespace">
          {view.namespace}
        </span>
      )}
      {view.token === null ? null : (
        <>
          <span
            class="muted"
            title={view.entityPrefix === null ? 'Token' : `Token for entities that begin with ${view.entityPrefix}`}
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
  readonly session: SignedIn;
  readonly children: ComponentChildren;
}

/** What surrounds every page: the links, the state of the connection, and who is signed in. */
export function Shell({ page, session, children }: ShellProps) {
  const heading = useRef<HTMLHeadingElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    document.title = `${TITLES[page]} · Headgate`;
    // A screen reader starts at the new page after a link was followed, but not when the document was loaded.
    if (!isFirst.current) heading.current?.focus();
    isFirst.current = false;
  }, [page]);
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
        <Access session={session} />
      </header>
      <nav aria-label="Pages">
        {PAGES_OF[session.view.role].map((name) => (
          <Link key={name} to={name} current={name === page}>
            {TITLES[name]}
          </Link>
        ))}
      </nav>
      <main id="main">
        <h1 ref={heading} tabIndex={-1}>
          {TITLES[page]}
        </h1>
        {live.value.kind === 'not connected' ? (
          <p class="notice" role="status">
            Not connected to the events of this server ({live.value.why}). Trying again. Figures of the store are read
            every few seconds.
          </p>
        ) : null}
        {children}
      </main>
    </div>
  );
}
