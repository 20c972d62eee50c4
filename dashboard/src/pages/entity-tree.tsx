import type { ChainLink } from '../api/reads.js';
import type { EntityView, Page } from '../api/types.js';
import { formatTime, formatValue } from '../model/format.js';
import { isRunning } from '../model/gauge.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { pauseText } from '../ui/gauge.js';
import { EntityLink, Link } from '../ui/link.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';

const MOST_CHILDREN = 50;

/** The parents above the entity, the entity, and its children. */
export function EntityTree({ chain }: { readonly chain: readonly ChainLink[] }) {
  const [own, ...parents] = chain;
  const id = own?.id ?? '';
  const children = useLoad(`children ${id}`, (signal) =>
    api.value.get<Page<EntityView>>('/v1/entities', { parentId: id, limit: String(MOST_CHILDREN) }, signal),
  );
  return (
    <Panel
      title={id}
      scope="store"
      actions={
        <>
          <Link to="limits" params={{ entity: id }}>
            Limits and pause
          </Link>
          <Link to="try" params={{ entity: id }}>
            Try
          </Link>
        </>
      }
    >
      <ol class="tree">
        {parents.toReversed().map((link, depth) => (
          <li key={link.id} style={{ paddingInlineStart: `${depth}rem` }}>
            <EntityLink id={link.id} /> <span class="muted">{link.record?.name}</span>
          </li>
        ))}
        <li class="here" style={{ paddingInlineStart: `${parents.length}rem` }} aria-current="true">
          <strong class="id">{id}</strong> <span class="muted">{own?.record?.name}</span>
        </li>
        <Loaded load={children}>
          {({ items, next }) => (
            <>
              {items.map((child) => (
                <li key={child.id} style={{ paddingInlineStart: `${parents.length + 1}rem` }}>
                  <EntityLink id={child.id} /> <span class="muted">{child.name}</span>
                  {child.cascade ? null : <span class="tag">spends alone</span>}
                </li>
              ))}
              {next === null ? null : <li class="muted">and more children</li>}
            </>
          )}
        </Loaded>
      </ol>
      <EntityRecord record={own?.record ?? null} />
    </Panel>
  );
}

function EntityRecord({ record }: { readonly record: EntityView | null }) {
  if (record === null) return <Empty>It has no record: no name, no parent, no metadata.</Empty>;
  const { paused, cascade, bypass, parentId, metadata, createdAt } = record;
  return (
    <>
      {isRunning(paused, Date.now()) ? <p class="notice warn">The entity is {pauseText(paused)}</p> : null}
      <dl class="facts">
        <dt>Spending</dt>
        <dd>{parentId !== null && cascade ? `counts for ${parentId} too` : 'counts for the entity alone'}</dd>
        {bypass === true ? (
          <>
            <dt>Bypass</dt>
            <dd>its own limits refuse nothing</dd>
          </>
        ) : null}
        <dt>Created</dt>
        <dd>{formatTime(Date.parse(createdAt))}</dd>
        {Object.entries(metadata).map(([name, value]) => [
          <dt key={name}>{name}</dt>,
          <dd key={`${name} value`} class="id">
            {formatValue(value)}
          </dd>,
        ])}
      </dl>
    </>
  );
}
