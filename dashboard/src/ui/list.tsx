import type { VNode } from 'preact';

interface ListProps {
  readonly class: string;
  readonly items: readonly VNode[];
  readonly isOrdered?: boolean;
}

/** A list without marks; nothing if it has no items, because screen readers announce an empty list. */
export function List({ items, isOrdered = false, ...rest }: ListProps) {
  const Tag = isOrdered ? 'ol' : 'ul';
  return items.length === 0 ? null : <Tag {...rest}>{items}</Tag>;
}
