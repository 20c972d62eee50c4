import { serverNow } from '../api/server-time.js';
import type { Change } from '../model/activity.js';
import { formatClock, formatCount } from '../model/format.js';
import { activity, drawing } from '../state/live.js';
import { EntityLink } from '../ui/link.js';
import { pauseText } from '../ui/gauge.js';
import { List } from '../ui/list.js';
import { Panel } from '../ui/panel.js';
import { NoEvents } from '../ui/states.js';

/** The pauses that this server has made or met since the page is connected. */
export function Pauses() {
  void drawing.value;
  const pauses = activity.pauses.runningAt(serverNow());
  return (
    <Panel title="Paused" scope="server">
      {pauses.length === 0 ? <NoEvents>None was seen since this page was opened.</NoEvents> : null}
      <List
        class="plain"
        items={pauses.map((paused) => (
          <li key={`${paused.entityId}\n${paused.resource ?? ''}`}>
            <EntityLink id={paused.entityId} resource={paused.resource ?? ''} />{' '}
            <span class="muted">{paused.resource ?? 'every resource'}</span>{' '}
            {paused.isUnchecked === true ? <span class="tag">not checked since the connection was lost</span> : null}
            <span class="tag warn">{pauseText(paused)}</span>
          </li>
        ))}
      />
    </Panel>
  );
}

const TITLES: Readonly<Record<Change['type'], string>> = {
  pause: 'paused',
  resume: 'resumed',
  'config-change': 'limits changed',
  'outage-begin': 'outage began',
  'outage-end': 'the store answers again',
};

/** What happened besides decisions. */
export function Changes() {
  void drawing.value;
  const changes = activity.changes.newest().slice(0, 8);
  const throttled = activity.throttles.rows().slice(0, 4);
  return (
    <Panel title="Changes and outages" scope="server">
      {changes.length + throttled.length === 0 ? <NoEvents>None was seen since this page was opened.</NoEvents> : null}
      <List
        class="plain"
        items={throttled.map(({ resource, count, atMs, text }) => (
          <li key={resource}>
            <span class="muted number">{formatClock(atMs)}</span> the provider refused calls of{' '}
            <span class="id">{resource}</span>, {formatCount(count)} times <span class="id">{text}</span>
          </li>
        ))}
      />
      <List
        class="plain"
        items={changes.map(({ atMs, type, text }, at) => (
          <li key={`${atMs} ${at}`}>
            <span class="muted number">{formatClock(atMs)}</span> {TITLES[type]}{' '}
            {text === '' ? null : <span class="id">{text}</span>}
          </li>
        ))}
      />
    </Panel>
  );
}
