import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';

/** Where the figures of a panel come from. */
type Scope = 'server' | 'store';

const LABELS: Readonly<Record<Scope, string>> = { server: 'This server', store: 'Whole store' };

interface PanelProps {
  readonly title: string;
  /** Default: `store`. */
  readonly scope?: Scope;
  readonly actions?: ComponentChildren;
  readonly wide?: boolean;
  readonly children: ComponentChildren;
}

/** A titled part of a page. Its badge says whether its figures are of this server or of the whole store. */
export function Panel({ title, scope = 'store', actions, wide = false, children }: PanelProps) {
  const id = useId();
  return (
    <section class={wide ? 'panel wide' : 'panel'} aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{title}</h2>
        <span class={`scope scope-${scope}`}>{LABELS[scope]}</span>
        <span class="grow" />
        {actions === undefined ? null : <span class="buttons">{actions}</span>}
      </header>
      {children}
    </section>
  );
}
