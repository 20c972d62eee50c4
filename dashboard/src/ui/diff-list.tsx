import type { DiffLine } from '../model/value-diff.js';
import { List } from './list.js';

/** The fields that a change has added, removed or changed, with their values. */
export function DiffList({ lines }: { readonly lines: readonly DiffLine[] }) {
  return (
    <List
      class="diff"
      items={lines.map(({ field, kind, before, after }) => (
        <li key={field} class={kind}>
          <span class="muted">{field}</span>
          {kind === 'added' ? null : <del>{before}</del>}
          {kind === 'removed' ? null : <ins>{after}</ins>}
        </li>
      ))}
    />
  );
}
