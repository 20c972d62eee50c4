import type { ComponentType } from 'preact';
import { useRef } from 'preact/hooks';
import type { SessionView } from './api/types.js';
import type { PageName } from './model/route.js';
import { AuditPage } from './pages/audit.js';
import { EntityPage } from './pages/entity.js';
import { LeasesPage } from './pages/leases.js';
import { LimitsPage } from './pages/limits.js';
import { OverviewPage } from './pages/overview.js';
import { SignInPage } from './pages/sign-in.js';
import { TryPage } from './pages/try.js';
import { UsagePage } from './pages/usage.js';
import { route } from './state/router.js';
import { openSession, session } from './state/session.js';
import { PAGES_OF, Shell } from './ui/shell.js';
import { Empty, Failure, Loading } from './ui/states.js';

const PAGES: Readonly<Record<PageName, ComponentType<{ readonly view: SessionView }>>> = {
  overview: OverviewPage,
  entity: EntityPage,
  usage: UsagePage,
  leases: LeasesPage,
  limits: LimitsPage,
  audit: AuditPage,
  try: TryPage,
};

export function AppRoot() {
  const state = session.value;
  const hasAsked = useRef(false);
  switch (state.kind) {
    case 'starting':
      return (
        <main>
          <Loading />
        </main>
      );
    case 'failed':
      return (
        <main class="sign-in">
          <h1>Headgate</h1>
          <Failure message={state.problem} onRetry={() => void openSession()} />
        </main>
      );
    case 'signed out':
      hasAsked.current = true;
      return <SignInPage problem={state.problem} />;
    case 'signed in': {
      const { page } = route.value;
      const { view, refusedNamespace } = state;
      const PageOfRoute = PAGES[page];
      return (
        <Shell page={page} view={view} refusedNamespace={refusedNamespace} isAfterSignIn={hasAsked.current}>
          {PAGES_OF[view.role].includes(page) ? (
            // Another reader or namespace gets a page of its own: nothing that was read before stays.
            <PageOfRoute key={`${view.token ?? ''}\n${view.namespace}`} view={view} />
          ) : (
            <Empty>This page needs a token of the role admin.</Empty>
          )}
        </Shell>
      );
    }
  }
}
