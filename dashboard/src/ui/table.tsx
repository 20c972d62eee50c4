import type { ComponentChildren } from 'preact';

/** Numbers are aligned to the right. */
export type Column<T> = readonly [title: string, cell: (row: T) => ComponentChildren, kind?: 'number'];

interface TableProps<T> {
  /** What the table lists, for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
}

/** A table. On narrow screens each row becomes a block; the roles keep it a table for screen readers. */
export function Table<T>({ caption, columns, rows, keyOf }: TableProps<T>) {
  return (
    <table role="table">
      <caption class="unseen">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(([title, , kind]) => (
            <th key={title} role="columnheader" scope="col" class={kind}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} role="row">
            {columns.map(([title, cell, kind]) => (
              <td key={title} role="cell" data-label={title} class={kind}>
                <div>{cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
