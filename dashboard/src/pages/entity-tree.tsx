import type { ChainLink } from '../api/reads.js';
import { serverNow } from '../api/server-time.js';
import type { EntityView, Page } from '../api/types.js';
import { formatTime, formatValue } from '../model/format.js';
import { isRunning } from '../model/gauge.js';
import { changed } from '../state/live.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { pauseText } from '../ui/gauge.js';
import { EntityLink, Link } from '../ui/link.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';

const MOST_CHILDREN = 50;
const EVERY_MS = 10_000;

/** The parents above the entity, the entity, and its children. */
export function EntityTree({ chain }: { readonly chain: readonly ChainLink[] }) {
  const [own, ...parents] = chain;
  const id = own?.id ?? '';
  const query = { parentId: id, limit: String(MOST_CHILDREN) };
  const children = useLoad(
    `children ${id}`,
    (signal) => api.value.get<Page<EntityView>>('/v1/entities', query, signal),
    { version: changed.value, everyMs: EVERY_MS },
  );
  return (
    <Panel
      title={id}
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
            <EntityLink id={link.id} /> <NameAndPause record={link.record} />
          </li>
        ))}
        <li class="here" style={{ paddingInlineStart: `${parents.length}rem` }} aria-current="true">
          <strong class="id">{id}</strong> <NameAndPause record={own?.record ?? null} />
        </li>
        {children.data?.items.map((child) => (
          <li key={child.id} style={{ paddingInlineStart: `${parents.length + 1}rem` }}>
            <EntityLink id={child.id} /> <NameAndPause record={child} />
            {child.cascade ? null : <span class="tag">spends alone</span>}
          </li>
        ))}
      </ol>
      <Loaded load={children}>
        {({ next }) => (next === null ? null : <p class="muted">There are more children.</p>)}
      </Loaded>
      <EntityRecord record={own?.record ?? null} />
    </Panel>
  );
}

function NameAndPause({ record }: { readonly record: EntityView | null }) {
  const isPaused = isRunning(record?.paused, serverNow());
  return (
    <>
      <span class="muted">{record?.name}</span> {isPaused ? <span class="tag warn">paused</span> : null}
    </>
  );
}

function EntityRecord({ record }: { readonly record: EntityView | null }) {
  if (record === null) return <Empty>It has no record.</Empty>;
  const { paused, cascade, bypass, parentId, metadata, createdAt } = record;
  const facts = [
    ['Spending', parentId !== null && cascade ? `counts for ${parentId} too` : 'counts for the entity alone'],
    ...(bypass === true ? [['Bypass', 'its own limits refuse nothing']] : []),
    ['Created', formatTime(Date.parse(createdAt))],
    ...Object.entries(metadata).map(([name, value]) => [name, formatValue(value)]),
  ];
  return (
    <>
      {isRunning(paused, serverNow()) ? <p class="notice warn">The entity is {pauseText(paused)}</p> : null}
      <dl class="facts">
        {facts.map(([name, text], at) => [
          <dt key={at}>{name}</dt>,
          <dd key={`${at} text`} class="id">
            {text}
          </dd>,
        ])}
      </dl>
    </>
  );
}
