import type { ComponentChildren } from 'preact';

interface StatProps {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly tone?: 'ok' | 'bad' | 'warn' | 'plain';
}

/** One large figure. Its panel says where it comes from. */
export function Stat({ label, value, note, tone = 'plain' }: StatProps) {
  return (
    <div class="stat">
      <dt>{label}</dt>
      <dd class={tone}>{value}</dd>
      {note === undefined ? null : <dd class="note">{note}</dd>}
    </div>
  );
}
