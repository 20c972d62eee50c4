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

const WIDEST_BAR = 12;

/** The columns of the widest row without its three bars. */
const ROW_WITHOUT_BARS = 77;

/** How many lines of a screen the text takes: a line that is wider than the screen takes several. */
export function countLines(text: string, width: number): number {
  // oxlint-disable-next-line eslint/no-control-regex -- the codes of colours begin with a control character
  const visible = text.replaceAll(/\u001B\[[\d;]*m/g, '').split('\n');
  return visible.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / width)), 0);
}

/** The state as a few lines of text. */
export function drawScreen({ seconds, entities, shared, lastDenial }: DemoState, style: Style): string {
  const room = Math.floor(((style.width ?? Number.POSITIVE_INFINITY) - ROW_WITHOUT_BARS) / 3);
  const columns = Math.min(WIDEST_BAR, Math.max(1, room));
  const rows = entities.map(({ entityId, granted, denied, perSecond, limits }) =>
    [
      entityId.padEnd(12),
      `${perSecond.toFixed(1).padStart(5)}/s`,
      style.green(String(granted).padStart(7)),
      denied === 0 ? '0'.padStart(7) : style.red(String(denied).padStart(7)),
      ...limits.map((status) => gauge(status, columns, style)),
    ].join('  '),
  );
  return [
    style.bold(`A simulated fleet, for ${seconds} s`),
    style.dim(`${'client'.padEnd(12)}  ${'asks'.padStart(7)}  granted   denied  used of its limits`),
    ...rows,
    `${'acme'.padEnd(12)}  ${style.dim('the project that all of them share')}  ${shared.map((status) => gauge(status, columns, style)).join('  ')}`,
    lastDenial === null ? '' : style.dim(`last denial: ${lastDenial}`),
  ].join('\n');
}

/** `tpm ████░░░░ 42 %`: how much of a limit is used. */
function gauge({ limit, available }: LimitStatus, columns: number, style: Style): string {
  const share = Math.min(1, Math.max(0, 1 - available / Math.max(1, limit.capacity)));
  const filled = Math.round(share * columns);
  const bar = '█'.repeat(filled) + '░'.repeat(columns - filled);
  const coloured = share >= 0.95 ? style.red(bar) : share >= 0.7 ? style.yellow(bar) : style.green(bar);
  return `${limit.name} ${coloured} ${String(Math.round(share * 100)).padStart(3)} %`;
}
