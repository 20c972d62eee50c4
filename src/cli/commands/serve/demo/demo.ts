import { mkdirSync } from 'node:fs';
import type { Decision } from '../../../../limiter/acquire/decision.js';
import type { RateLimiter } from '../../../../limiter/rate-limiter.js';
import type { Terminal } from '../../../terminal/terminal.js';
import { CLIENTS, startFleet } from './fleet.js';
export { prepareDemo } from './fleet.js';
import { countLines, type DemoState, drawScreen } from './screen.js';

const FOLDER = '.headgate';

/** The store of the demo: one file, which stays for the next start. */
export function demoStore(): string {
  mkdirSync(FOLDER, { recursive: true });
  return `file:${FOLDER}/demo.db`;
}

/** Lines that can be pasted into another terminal while the demo runs. `header`: an option of curl with a token, or empty. */
export function demoCommands(url: string, header: string): readonly string[] {
  const ask = '{"entityId":"acme/web","resource":"gpt-4","consume":{"rpm":1,"tpm":500}}';
  return [
    `curl -s ${url}/v1/acquire${header} -H 'content-type: application/json' -d '${ask}'`,
    `curl -s '${url}/v1/status?entityId=acme/batch&resource=gpt-4'${header}`,
    `curl -s '${url}/v1/usage?resource=gpt-4&window=hourly'${header}`,
  ];
}

const REDRAW_MS = 500;
const LINES_EVERY_MS = 5_000;

/**
 * Runs the simulated fleet until `signal` aborts, and shows it: redrawn at a terminal, else as lines. `isSilent`: not at all,
 * because a program reads the output.
 */
export async function runDemo(
  limiter: RateLimiter,
  terminal: Pick<Terminal, 'out' | 'style'>,
  signal: AbortSignal,
  isSilent: boolean,
): Promise<void> {
  const tally = new Tally();
  const fleet = startFleet(limiter, ({ entityId }, decision) => tally.count(entityId, decision));
  let drawn = '';
  const draw = async (): Promise<void> => {
    const state = await tally.read(limiter);
    // The width of now: the terminal breaks the lines of the last drawing anew when its window changes.
    const { style } = terminal;
    const text = drawScreen(state, style);
    terminal.out(`${style.width === undefined ? '' : eraseLines(drawn, style.width)}${text}\n`);
    drawn = text;
  };
  const everyMs = terminal.style.width === undefined ? LINES_EVERY_MS : REDRAW_MS;
  if (!isSilent) await draw();
  const timer = isSilent ? undefined : setInterval(() => void draw().catch(() => {}), everyMs);
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  clearInterval(timer);
  await fleet.stop();
}

/** Moves the cursor to the first line of the last drawing, and clears from there. */
function eraseLines(drawn: string, width: number): string {
  return drawn === '' ? '' : `\u001B[${countLines(drawn, width)}A\u001B[J`;
}

/** Counts decisions by client. */
class Tally {
  readonly #startMs = performance.now();
  readonly #counts = new Map<string, { granted: number; denied: number }>();
  #lastDenial: string | null = null;

  count(entityId: string, decision: Decision): void {
    const counts = this.#counts.get(entityId) ?? { granted: 0, denied: 0 };
    this.#counts.set(entityId, counts);
    if (decision.granted) {
      counts.granted += 1;
      return;
    }
    counts.denied += 1;
    const [violation] = decision.violations;
    if (violation === undefined) return;
    const wait = decision.retryAfterMs === null ? 'waiting does not help' : `retry in ${decision.retryAfterMs} ms`;
    this.#lastDenial = `${entityId} by ${violation.limit.name} of ${violation.entityId}, ${wait}`;
  }

  async read(limiter: RateLimiter): Promise<DemoState> {
    const seconds = Math.max(1, Math.round((performance.now() - this.#startMs) / 1000));
    const entities = await Promise.all(
      CLIENTS.map(async ({ entityId, resource }) => {
        const { granted, denied } = this.#counts.get(entityId) ?? { granted: 0, denied: 0 };
        const statuses = await limiter.status({ entityId, resource });
        const limits = statuses.filter((status) => status.entityId === entityId);
        const shared = statuses.filter((status) => status.entityId !== entityId);
        return { entityId, granted, denied, perSecond: (granted + denied) / seconds, limits, shared };
      }),
    );
    return { seconds, entities, shared: entities[0]?.shared ?? [], lastDenial: this.#lastDenial };
  }
}
