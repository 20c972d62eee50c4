import type { Api } from '../api/http.js';
import { readChain, readEffective, readStatuses } from '../api/reads.js';
import { serverNow } from '../api/server-time.js';
import type { AskResult, EffectiveView, StatusView } from '../api/types.js';
import { explain, type ExplainedLevel, type LevelBefore } from '../model/explain.js';

interface Ask {
  readonly entityId: string;
  readonly resource: string;
  readonly consume: Readonly<Record<string, number>>;
  readonly priority?: string;
}

/** Makes an ask, or only looks what it would get, and explains the answer. */
export async function tryAsk(
  api: Api,
  ask: Ask,
  isDryRun: boolean,
  isAdmin: boolean,
): Promise<{ readonly result: AskResult; readonly levels: readonly ExplainedLevel[] }> {
  const { entityId, resource } = ask;
  const before = await readStatuses(api, entityId, resource);
  const levels = isAdmin ? await readLevels(api, ask, before) : levelsIn(before);
  const { statuses: peeked } = await api.send<{ readonly statuses: readonly StatusView[] }>('POST', '/v1/peek', {
    body: ask,
  });
  const result = isDryRun ? resultOf(peeked, before) : await acquire(api, ask);
  const isGranted = result.granted;
  // A denial tells only the limits that refused. The others are as the peek saw them.
  const statuses = isGranted ? result.statuses : [...(result.violations ?? []), ...peeked];
  return { result, levels: explain(levels, { isGranted, isDryRun, statuses }, ask.consume) };
}

/** As a batch of one: a denial is then an answer of the status 200, which a browser does not report as a failed request. */
async function acquire(api: Api, ask: Ask): Promise<AskResult> {
  const body = { asks: [ask] };
  const { results } = await api.send<{ readonly results: readonly AskResult[] }>('POST', '/v1/acquire/batch', { body });
  const [result] = results;
  if (result === undefined) throw new Error('The server answered no result');
  return result;
}

async function readLevels(
  api: Api,
  { entityId, resource }: Ask,
  statuses: readonly StatusView[],
): Promise<LevelBefore[]> {
  const chain = await readChain(api, entityId, true);
  return Promise.all(
    chain.map(async ({ id }) => ({ entityId: id, config: await readEffective(api, id, resource), statuses })),
  );
}

/** A token of the role app may not read configs: the statuses have the limits of each level. */
function levelsIn(statuses: readonly StatusView[]): LevelBefore[] {
  return [...new Set(statuses.map(({ entityId }) => entityId))].map((entityId) => {
    const limits = statuses.filter((status) => status.entityId === entityId).map(({ limit }) => limit);
    const config: EffectiveView = { limits, configSource: 'not shown to this token', onUnavailable: '' };
    return { entityId, config, statuses };
  });
}

/** The decision that an ask with these statuses would get. `others`: of all limits, because an ask may name none that has one. */
function resultOf(statuses: readonly StatusView[], others: readonly StatusView[]): AskResult {
  const refusing = statuses.filter(({ exceeded, shadow }) => exceeded && shadow !== true);
  const denied = { granted: false, detail: '' } as const;
  const paused = [...statuses, ...others].find((one) => one.paused)?.paused;
  if (paused !== undefined) {
    const retryAfterMs = paused.until === null ? null : Date.parse(paused.until) - serverNow();
    return { ...denied, reason: 'paused', retryAfterMs, violations: [], paused };
  }
  if (refusing.length === 0) {
    return { granted: true, lease: { id: '', token: null }, statuses };
  }
  const waits = refusing.map(({ retryAfterMs }) => retryAfterMs);
  const never = waits.includes(null);
  const retryAfterMs = never ? null : Math.max(...waits.map(Number));
  return { ...denied, reason: never ? 'impossible' : 'exhausted', retryAfterMs, violations: refusing };
}
