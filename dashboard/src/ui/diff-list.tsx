import type { DiffLine } from '../model/value-diff.js';

/** The fields that a change has added, removed or changed, with their values. */
export function DiffList({ lines }: { readonly lines: readonly DiffLine[] }) {
  return (
    <ul class="diff">
      {lines.map(({ field, kind, before, after }) => (
        <li key={field} class={kind}>
          <span class="diff-field">{field}</span>
          {kind === 'added' ? null : <del>{before}</del>}
          {kind === 'removed' ? null : <ins>{after}</ins>}
        </li>
      ))}
    </ul>
  );
}
