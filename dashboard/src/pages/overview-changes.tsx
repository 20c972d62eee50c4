import type { Change } from '../model/activity.js';
import { formatClock } from '../model/format.js';
import { activity, drawing } from '../state/live.js';
import { EntityLink } from '../ui/link.js';
import { pauseText } from '../ui/gauge.js';
import { Panel } from '../ui/panel.js';
import { Empty } from '../ui/states.js';

/** The pauses that this server has made or met. */
export function Pauses() {
  void drawing.value;
  const pauses = activity.pausesAt(Date.now());
  return (
    <Panel title="Paused" scope="server">
      {pauses.length === 0 ? <Empty>This server has made or met no pause.</Empty> : null}
      <ul class="plain">
        {pauses.map((paused) => (
          <li key={`${paused.entityId}\n${paused.resource ?? ''}`}>
            <EntityLink id={paused.entityId} resource={paused.resource ?? ''} />{' '}
            <span class="muted">{paused.resource ?? 'every resource'}</span>{' '}
            <span class="tag warn">{pauseText(paused)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

const TITLES: Readonly<Record<Change['type'], string>> = {
  pause: 'paused',
  resume: 'resumed',
  'config-change': 'limits changed',
  'provider-throttle': 'the provider refused',
  'outage-begin': 'outage began',
  'outage-end': 'the store answers again',
};

/** What happened besides decisions. */
export function Changes() {
  void drawing.value;
  const changes = activity.changes.newest().slice(0, 8);
  return (
    <Panel title="Changes and outages" scope="server">
      {changes.length === 0 ? <Empty>None since the page was opened.</Empty> : null}
      <ul class="plain">
        {changes.map(({ atMs, type, text }, at) => (
          <li key={`${atMs} ${at}`}>
            <span class="muted number">{formatClock(atMs)}</span> {TITLES[type]}{' '}
            {text === '' ? null : <span class="id">{text}</span>}
          </li>
        ))}
      </ul>
    </Panel>
  );
}
