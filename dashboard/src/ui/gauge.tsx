import type { ComponentChildren } from 'preact';
import type { PausedBy, StoredPause } from '../api/types.js';
import type { GaugeView } from '../model/gauge.js';
import { formatCount, formatTime } from '../model/format.js';
import { nameOfPaused } from '../model/levels.js';

const percent = (share: number): string => `${Math.round(share * 1_000) / 10}%`;

/** How a pause ends, in words. */
export function pauseText({ until, reason }: StoredPause): string {
  const end = until === null ? 'until it is resumed' : `until ${formatTime(Date.parse(until))}`;
  return `paused ${end}: ${reason}`;
}

/** The sentence of a pause, which refuses asks at every level below it. */
export function PauseNotice({
  paused,
  children,
}: {
  readonly paused: PausedBy;
  readonly children?: ComponentChildren;
}) {
  return (
    <p class="notice warn">
      {nameOfPaused(paused)} is {pauseText(paused)} {children}
    </p>
  );
}

interface GaugeProps {
  readonly view: GaugeView;
  readonly isPaused: boolean;
  /** Of all limits that an ask needs, it is the one that is used most. */
  readonly isTightest: boolean;
}

/** One limit as a bar: what is used of the capacity, debt in stripes, reserves as marks. */
export function Gauge({ view, isPaused, isTightest }: GaugeProps) {
  const { name, text, level, usedShare, debt, debtShare, reserves, isShadow, summary } = view;
  return (
    <div class={`gauge ${level}${isPaused ? ' paused' : ''}`} data-limit={name}>
      <div class="gauge-line">
        <strong>{name}</strong>
        <span>{summary}</span>
      </div>
      <div
        class="bar"
        role="meter"
        aria-label={name}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(usedShare * 100)}
        aria-valuetext={isPaused ? `${summary}; paused` : summary}
      >
        <div class="bar-used" style={{ width: percent(usedShare) }} />
        {debt > 0 ? <div class="bar-debt" style={{ width: percent(Math.max(0.02, debtShare)) }} /> : null}
        {reserves.map(({ priority, fromShare }) => (
          <div key={priority} class="bar-reserve" style={{ left: percent(fromShare) }} />
        ))}
      </div>
      <div class="gauge-notes">
        <code>{text}</code>
        {isTightest ? <span class="tag warn">used most</span> : null}
        {debt > 0 ? <span class="tag bad">debt {formatCount(debt)}</span> : null}
        {reserves.map(({ priority, tokens }) => (
          <span key={priority} class="tag reserve">
            {priority} must leave {formatCount(tokens)}
          </span>
        ))}
        {isShadow ? <span class="tag">shadow: refuses nothing</span> : null}
      </div>
    </div>
  );
}
