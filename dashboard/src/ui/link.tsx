import type { ComponentChildren } from 'preact';
import type { PageName } from '../model/route.js';
import { addressOf } from '../state/router.js';
import { session } from '../state/session.js';

interface LinkProps {
  readonly to: PageName;
  readonly params?: Readonly<Record<string, string>>;
  readonly class?: string;
  readonly current?: boolean;
  readonly children: ComponentChildren;
}

/** A link to a page of the dashboard. The router follows it without loading the document again. */
export function Link({ to, params = {}, current = false, children, ...rest }: LinkProps) {
  return (
    <a href={addressOf(to, params)} {...(current ? { 'aria-current': 'page' as const } : {})} {...rest}>
      {children}
    </a>
  );
}

/** Links to an entity, unless the token does not cover it: its page would only say so. */
export function EntityLink({ id, resource = '' }: { readonly id: string; readonly resource?: string }) {
  const { value } = session;
  const prefix = value.kind === 'signed in' ? value.view.entityPrefix : null;
  if (!id.startsWith(prefix ?? '')) return <span class="id">{id}</span>;
  return (
    <Link to="entity" params={{ id, resource }} class="id">
      {id}
    </Link>
  );
}
