import type { LlmApi } from './llm-call.js';

/** An address that answers calls of a model. */
export interface Endpoint {
  readonly api: LlmApi;
  /** The model, where the address names it; null: the body does. */
  readonly model: string | null;
  /** Whether the address asks for a stream; null: the body says so. */
  readonly stream: boolean | null;
}

const BY_SUFFIX: readonly (readonly [suffix: string, api: LlmApi])[] = [
  ['/chat/completions', 'openai-chat'],
  ['/completions', 'openai-completions'],
  ['/responses', 'openai-responses'],
  ['/embeddings', 'openai-embeddings'],
  ['/messages', 'anthropic'],
];

/** By the lower-case name of the method. */
const GOOGLE: ReadonlyMap<string, Pick<Endpoint, 'api' | 'stream'>> = new Map([
  ['generatecontent', { api: 'google', stream: false }],
  ['streamgeneratecontent', { api: 'google', stream: true }],
  ['embedcontent', { api: 'google-embeddings', stream: false }],
  ['batchembedcontents', { api: 'google-embeddings', stream: false }],
]);

/** Claude on Vertex AI. The counting of tokens has an address of the same form, and costs nothing. */
const VERTEX: ReadonlyMap<string, Pick<Endpoint, 'api' | 'stream'>> = new Map([
  ['rawpredict', { api: 'anthropic', stream: false }],
  ['streamrawpredict', { api: 'anthropic', stream: true }],
]);
const COUNTING = 'count-tokens';

/** Finds out what an address answers by the end of its path, because proxies and vendors put other paths before it. */
export function readEndpoint(address: string): Endpoint | null {
  const segments = segmentsOf(address);
  const lower = segments.map((segment) => segment.toLowerCase());
  const [, model = '', method = ''] = /^(.+):(\w+)$/.exec(segments.at(-1) ?? '') ?? [];
  const google = GOOGLE.get(method.toLowerCase());
  if (google !== undefined) return { ...google, model };
  const vertex = VERTEX.get(method.toLowerCase());
  const isClaude = lower.slice(-4, -1).join('/') === 'publishers/anthropic/models';
  if (vertex !== undefined && isClaude && model !== COUNTING) return { ...vertex, model };
  const path = `/${lower.join('/')}`;
  const api = BY_SUFFIX.find(([suffix]) => path.endsWith(suffix))?.[1];
  return api === undefined ? null : { api, model: deploymentIn(segments, lower), stream: null };
}

/** Azure names the model in the path. */
function deploymentIn(segments: readonly string[], lower: readonly string[]): string | null {
  const at = lower.indexOf('deployments');
  return at < 0 || at + 2 >= segments.length ? null : (segments[at + 1] ?? null);
}

/**
 * The parts of a path as servers read them, many of which accept empty parts and encoded characters. Without the query:
 * Google accepts a key there.
 */
function segmentsOf(address: string): readonly string[] {
  return decode(pathOf(address))
    .split('/')
    .filter((segment) => segment !== '');
}

function pathOf(address: string): string {
  try {
    // `fetch` resolves dot segments too.
    return new URL(address, 'http://relative.invalid').pathname;
  } catch {
    return address.split(/[?#]/, 1)[0] ?? '';
  }
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
