import type { ComponentChildren } from 'preact';
import { type Scope, ScopeBadge } from './panel.js';

interface StatProps {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly tone?: 'ok' | 'bad' | 'warn' | 'plain';
  readonly scope: Scope;
}

/** One large figure. */
export function Stat({ label, value, note, tone = 'plain', scope }: StatProps) {
  return (
    <div class="stat">
      <dt>
        {label} <ScopeBadge scope={scope} />
      </dt>
      <dd class={tone}>{value}</dd>
      {note === undefined ? null : <dd class="note">{note}</dd>}
    </div>
  );
}
