import type { LimitStatus } from '../../../../core/bucket/decide.js';
import type { Style } from '../../../terminal/terminal.js';

/** What the screen of the demo shows. */
export interface DemoState {
  readonly seconds: number;
  readonly entities: readonly EntityState[];
  /** The limits of the project that all clients share. */
  readonly shared: readonly LimitStatus[];
  readonly lastDenial: string | null;
}

export interface EntityState {
  readonly entityId: string;
  readonly granted: number;
  readonly denied: number;
  readonly perSecond: number;
  readonly limits: readonly LimitStatus[];
}

const BAR = 12;

/** The state as a few lines of text. */
export function drawScreen({ seconds, entities, shared, lastDenial }: DemoState, style: Style): string {
  const rows = entities.map(({ entityId, granted, denied, perSecond, limits }) =>
    [
      entityId.padEnd(12),
      `${perSecond.toFixed(1).padStart(5)}/s`,
      style.green(String(granted).padStart(7)),
      denied === 0 ? '0'.padStart(7) : style.red(String(denied).padStart(7)),
      ...limits.map((status) => gauge(status, style)),
    ].join('  '),
  );
  return [
    style.bold(`A simulated fleet, for ${seconds} s`),
    style.dim(`${'client'.padEnd(12)}  ${'asks'.padStart(7)}  granted   denied  used of its limits`),
    ...rows,
    `${'acme'.padEnd(12)}  ${style.dim('the project that all of them share')}  ${shared.map((status) => gauge(status, style)).join('  ')}`,
    lastDenial === null ? '' : style.dim(`last denial: ${lastDenial}`),
  ].join('\n');
}

/** `tpm ████░░░░ 42 %`: how much of a limit is used. */
function gauge({ limit, available }: LimitStatus, style: Style): string {
  const share = Math.min(1, Math.max(0, 1 - available / Math.max(1, limit.capacity)));
  const filled = Math.round(share * BAR);
  const bar = '█'.repeat(filled) + '░'.repeat(BAR - filled);
  const coloured = share >= 0.95 ? style.red(bar) : share >= 0.7 ? style.yellow(bar) : style.green(bar);
  return `${limit.name} ${coloured} ${String(Math.round(share * 100)).padStart(3)} %`;
}
