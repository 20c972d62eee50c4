import type { ComponentChildren } from 'preact';
import { buildAddress, type PageName } from '../model/route.js';

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
    <a href={buildAddress(to, params)} {...(current ? { 'aria-current': 'page' as const } : {})} {...rest}>
      {children}
    </a>
  );
}

export function EntityLink({ id, resource = '' }: { readonly id: string; readonly resource?: string }) {
  return (
    <Link to="entity" params={{ id, resource }} class="id">
      {id}
    </Link>
  );
}
