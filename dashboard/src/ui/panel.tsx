import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

/** Where the figures of a panel come from. */
export type Scope = 'server' | 'store';

const SCOPES: Readonly<Record<Scope, { readonly label: string; readonly title: string }>> = {
  server: { label: 'This server', title: 'Events of this server process since the page was opened' },
  store: { label: 'Whole store', title: 'Read from the store: it counts every process' },
};

export function ScopeBadge({ scope }: { readonly scope: Scope }) {
  const { label, title } = SCOPES[scope];
  return (
    <span class={`scope scope-${scope}`} title={title}>
      {label}
    </span>
  );
}

interface PanelProps {
  readonly title: string;
  readonly scope?: Scope;
  readonly actions?: ComponentChildren;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}

/** A titled part of a page. Its badge says whether its figures are of this server or of the whole store. */
export function Panel({ title, scope, actions, wide = false, children }: PanelProps) {
  const id = useId();
  return (
    <section class={wide ? 'panel wide' : 'panel'} aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{title}</h2>
        {scope === undefined ? null : <ScopeBadge scope={scope} />}
        <span class="grow" />
        {actions === undefined ? null : <span class="buttons">{actions}</span>}
      </header>
      {children}
    </section>
  );
}
