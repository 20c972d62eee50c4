import type { ChildProcess } from 'node:child_process';
import { type ProviderQuota, type ProviderRequest, startProvider } from '../../../src/testing/provider/index.js';
import type { FleetNews, FleetOrder } from '../../chaos/llm-fleet-child.js';
import { ended } from '../processes/fork-bundled.js';

export const PROCESSES = 8;
const CLIENTS = 50;

export interface Fleet {
  readonly model: string;
  readonly durationMs: number;
  /** The fewest words of a prompt. The most are three times as many. */
  readonly words: number;
  readonly maxOutput: number;
  /** null: without Headgate. */
  readonly store: FleetOrder['store'];
  /** null: the provider refuses no call. */
  readonly quota: ProviderQuota | null;
}

export interface FleetFigures {
  readonly answered: number;
  readonly refused: number;
  readonly failed: number;
  readonly tokens: number;
  /** The tokens that were served, of those that the quota allows. 0 without a quota. */
  readonly share: number;
  readonly reasons: readonly string[];
  readonly errors: readonly string[];
}

/** Eight processes with fifty clients each call a simulated provider for some time, as fast as they can. */
export async function runFleet(start: () => ChildProcess, fleet: Fleet): Promise<FleetFigures> {
  const { quota, durationMs, ...order } = fleet;
  let made = 0;
  // Between half and all of what the request allows.
  const plan = ({ maxOutputTokens }: ProviderRequest) => ({
    outputTokens: Math.ceil((maxOutputTokens ?? 0) * (0.5 + ((made++ * 7) % 50) / 100)),
    startDelayMs: 50,
  });
  await using provider = await startProvider({ plan, ...(quota === null ? {} : { quota }) });
  const children = Array.from({ length: PROCESSES }, () => start());
  const exits = children.map(ended);
  const heard = async (child: ChildProcess, message: object | string): Promise<unknown> => {
    const answer = new Promise<unknown>((resolve) => child.once('message', resolve));
    child.send(message);
    return answer;
  };
  const orders = children.map((_, process): FleetOrder => ({
    ...order,
    process,
    durationMs,
    url: provider.url,
    clients: CLIENTS,
  }));
  await Promise.all(children.map(async (child, at) => heard(child, orders[at]!)));
  const news = (await Promise.all(children.map(async (child) => heard(child, 'go')))) as FleetNews[];
  const codes = await Promise.all(exits);
  const sum = (of: (one: FleetNews) => number): number => news.reduce((total, one) => total + of(one), 0);
  const tokens = provider.calls.reduce(
    (total, call) => total + (call.status === 200 ? call.inputTokens + call.outputTokens : 0),
    0,
  );
  const allowed = quota === null ? Infinity : quota.burst + (quota.tokensPerSecond * durationMs) / 1000;
  return {
    answered: sum(({ calls }) => calls),
    refused: provider.calls.filter(({ end }) => end === 'refused').length,
    failed: sum(({ failed }) => failed),
    tokens,
    share: Number((tokens / allowed).toFixed(3)),
    reasons: [...new Set(news.flatMap((one) => one.reasons))],
    errors: [...news.flatMap((one) => one.errors), ...codes.filter((code) => code !== 0).map((code) => `exit ${code}`)],
  };
}
