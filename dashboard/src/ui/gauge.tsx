import type { StoredPause } from '../api/types.js';
import type { GaugeView } from '../model/gauge.js';
import { formatCount, formatTime } from '../model/format.js';

const percent = (share: number): string => `${Math.round(share * 1_000) / 10}%`;

/** How a pause ends, in words. */
export function pauseText({ until, reason }: StoredPause): string {
  const end = until === null ? 'until it is resumed' : `until ${formatTime(Date.parse(until))}`;
  return `paused ${end}: ${reason}`;
}

/** One limit as a bar: what is used of the capacity, debt in stripes, reserves as marks. */
export function Gauge({ view, paused }: { readonly view: GaugeView; readonly paused?: StoredPause | undefined }) {
  const { name, text, level, usedShare, debt, debtShare, reserves, isShadow, summary } = view;
  const valueText = paused === undefined ? summary : `${summary}; ${pauseText(paused)}`;
  return (
    <div class={`gauge ${level}${paused === undefined ? '' : ' paused'}`} data-limit={name}>
      <div class="gauge-line">
        <strong>{name}</strong>
        <span class="gauge-summary">{summary}</span>
      </div>
      <div
        class="bar"
        role="meter"
        aria-label={name}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(usedShare * 100)}
        aria-valuetext={valueText}
      >
        <div class="bar-used" style={{ width: percent(usedShare) }} />
        {debt > 0 ? <div class="bar-debt" style={{ width: percent(Math.max(0.02, debtShare)) }} /> : null}
        {reserves.map(({ priority, fromShare }) => (
          <div key={priority} class="bar-reserve" style={{ left: percent(fromShare) }} />
        ))}
      </div>
      <div class="gauge-notes">
        <code>{text}</code>
        {debt > 0 ? <span class="tag bad">debt {formatCount(debt)}</span> : null}
        {reserves.map(({ priority, tokens }) => (
          <span key={priority} class="tag reserve">
            {priority} leaves {formatCount(tokens)}
          </span>
        ))}
        {isShadow ? <span class="tag">shadow: refuses nothing</span> : null}
        {paused === undefined ? null : <span class="tag warn">{pauseText(paused)}</span>}
      </div>
    </div>
  );
}
