import type { SessionView } from '../api/types.js';
import { formatAge, formatAtMost, formatClock, formatCount, formatRate } from '../model/format.js';
import { activity, drawing, hears } from '../state/live.js';
import { Chart } from '../ui/chart.js';
import { Panel } from '../ui/panel.js';
import { Stat } from '../ui/stat.js';
import { Changes, Pauses } from './overview-changes.js';
import { RefusedNow, TopCallers } from './overview-refused.js';
import { Settled } from './overview-settled.js';
import { SlotsInUse, WaitingCalls } from './overview-slots.js';

const RATE_SECONDS = 10;

/** What this server decides now, and who is refused by which limit. */
export function OverviewPage({ view }: { readonly view: SessionView }) {
  const isAdmin = view.role === 'admin';
  return (
    <div class="page">
      <Panel title="Now" scope="server">
        <Figures />
      </Panel>
      <RefusedNow />
      <div class="grid narrow">
        <Pauses />
        {isAdmin ? <WaitingCalls /> : null}
        <Changes />
      </div>
      <Panel title="Decisions a second" scope="server">
        <DecisionChart />
      </Panel>
      <div class="grid narrow">
        <TopCallers kind="refused" />
        <TopCallers kind="allowed" />
        {isAdmin ? <SlotsInUse /> : null}
        <Settled />
      </div>
    </div>
  );
}

function Figures() {
  // Reading it subscribes the component: the activity itself is no signal.
  void drawing.value;
  const nowMs = Date.now();
  const { durations, outage, missed } = activity;
  const [granted, denied, degraded] = [activity.granted, activity.denied, activity.degraded].map((ring) =>
    hears.value ? activity.rate(ring, nowMs, RATE_SECONDS) : null,
  );
  const note = !hears.value ? 'not connected' : `mean of ${RATE_SECONDS} s`;
  return (
    <dl class="stats">
      <Stat label="Granted / s" value={rateText(granted)} tone="ok" note={note} />
      <Stat label="Denied / s" value={rateText(denied)} tone={(denied ?? 0) > 0 ? 'bad' : 'plain'} note={note} />
      <Stat
        label="Degraded / s"
        value={rateText(degraded)}
        tone={(degraded ?? 0) > 0 ? 'warn' : 'plain'}
        note="decided without the store"
      />
      <Stat
        label="Time to decide"
        value={formatAtMost(durations.quantile(nowMs, 0.5))}
        note={`95 %: ${formatAtMost(durations.quantile(nowMs, 0.95))}, last minute`}
      />
      <Stat
        label="Store"
        value={outage === undefined ? '–' : outage === null ? 'answers' : 'outage'}
        tone={outage ? 'bad' : 'plain'}
        note={hears.value ? storeText(outage, nowMs) : 'not connected'}
      />
      {missed === 0 ? null : (
        <Stat label="Events missed" value={formatCount(missed)} note="the figures are too low by them" tone="warn" />
      )}
    </dl>
  );
}

function storeText(outage: typeof activity.outage, nowMs: number): string {
  if (outage === undefined) return 'no decision yet';
  if (outage === null) return 'no outage now';
  const age = formatAge(outage.sinceMs, nowMs);
  return outage.error === null ? `for more than ${age}` : `for ${age}: ${outage.error}`;
}

function rateText(rate: number | null | undefined): string {
  return rate === null || rate === undefined ? '–' : formatRate(rate);
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
