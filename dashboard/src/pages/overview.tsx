import type { SessionView } from '../api/types.js';
import { formatAge, formatClock, formatCount, formatDuration, formatRate } from '../model/format.js';
import { activity, drawing, live } from '../state/live.js';
import { Chart } from '../ui/chart.js';
import { Panel } from '../ui/panel.js';
import { Stat } from '../ui/stat.js';
import { Changes, Pauses } from './overview-changes.js';
import { RefusedNow, TopCallers } from './overview-refused.js';
import { SlotsInUse, WaitingCalls } from './overview-slots.js';

const RATE_SECONDS = 10;

/** What this server decides now, and who is refused by which limit. */
export function OverviewPage({ view }: { readonly view: SessionView }) {
  const isAdmin = view.role === 'admin';
  return (
    <div class="page grid">
      <Figures />
      <Panel title="Decisions a second" scope="server" wide>
        <DecisionChart />
      </Panel>
      <RefusedNow />
      <TopCallers kind="refused" />
      <TopCallers kind="allowed" />
      {isAdmin ? <SlotsInUse /> : null}
      {isAdmin ? <WaitingCalls /> : null}
      <Pauses />
      <Changes />
    </div>
  );
}

function Figures() {
  // Reading it subscribes the component: the activity itself is no signal.
  void drawing.value;
  const nowMs = Date.now();
  const { durations, outage, missed } = activity;
  const [granted, denied, degraded] = [activity.granted, activity.denied, activity.degraded].map((ring) =>
    activity.rate(ring, nowMs, RATE_SECONDS),
  );
  const [p50, p95] = [durations.quantile(0.5), durations.quantile(0.95)];
  const isOff = live.value.kind === 'not connected';
  const note = isOff ? 'not connected' : `mean of ${RATE_SECONDS} s`;
  return (
    <dl class="stats wide">
      <Stat label="Granted / s" value={rateText(granted)} tone="ok" note={note} scope="server" />
      <Stat
        label="Denied / s"
        value={rateText(denied)}
        tone={(denied ?? 0) > 0 ? 'bad' : 'plain'}
        note={note}
        scope="server"
      />
      <Stat
        label="Degraded / s"
        value={rateText(degraded)}
        tone={(degraded ?? 0) > 0 ? 'warn' : 'plain'}
        note="decided without the store"
        scope="server"
      />
      <Stat
        label="Time to decide"
        value={p50 === null ? '–' : atMostText(p50)}
        note={p95 === null ? 'no decision yet' : `95 %: ${atMostText(p95)}, with waits`}
        scope="server"
      />
      <Stat
        label="Store"
        value={outage === null ? 'answers' : 'outage'}
        tone={outage === null ? 'plain' : 'bad'}
        note={outage === null ? 'no outage seen' : `for ${formatAge(outage.sinceMs, nowMs)}: ${outage.error}`}
        scope="server"
      />
      {missed === 0 ? null : (
        <Stat
          label="Events missed"
          value={formatCount(missed)}
          note="the figures are too low by them"
          tone="warn"
          scope="server"
        />
      )}
    </dl>
  );
}

function rateText(rate: number | null | undefined): string {
  return rate === null || rate === undefined ? '–' : formatRate(rate);
}

function atMostText(durationMs: number): string {
  return durationMs === 0 ? '< 1 ms' : `≤ ${formatDuration(durationMs)}`;
}

function DecisionChart() {
  void drawing.value;
  const nowMs = Date.now();
  const second = Math.floor(nowMs / 1_000);
  const seconds = activity.secondsAt(nowMs);
  const granted = activity.history(activity.granted, nowMs, seconds);
  const denied = activity.history(activity.denied, nowMs, seconds);
  const x = granted.map((_, at) => second - granted.length + at);
  const [lastGranted, lastDenied] = [granted.at(-1) ?? null, denied.at(-1) ?? null];
  const label =
    lastGranted === null
      ? 'The decisions of the last second are not known'
      : `Granted ${lastGranted} and denied ${lastDenied ?? 0} in the last second`;
  return (
    <Chart
      label={label}
      x={x}
      height={160}
      xText={(value) => formatClock(value * 1_000)}
      series={[
        { label: 'granted', colour: 'ok', values: granted },
        { label: 'denied', colour: 'bad', values: denied },
      ]}
    />
  );
}
