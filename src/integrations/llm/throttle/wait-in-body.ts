import { JsonMembers } from '../usage/json-members.js';
import { at } from './read-body.js';
import { parseWaitMs } from './waits.js';

/** The wait that the body of a refusal states. `text`: the body or its beginning, which may be no JSON. */
export function waitInBody(body: unknown, text: string | null): number | null {
  return retryDelay(body) ?? waitInProse(body, text);
}

const IN_MESSAGE =
  /(?:re)?try(?: again)? (?:in|after) (?:((?:\d+(?:\.\d+)?(?:h|ms|m|s))+)\b|(\d+(?:\.\d+)?) ?s(?:ec(?:ond)?s?)?\b)/i;

/** Google states the wait in `RetryInfo`. */
function retryDelay(body: unknown): number | null {
  const details = at(at(body, 'error'), 'details');
  const infos = Array.isArray(details) ? details : [];
  for (const info of infos) {
    const delay = at(info, 'retryDelay');
    const waitMs = typeof delay === 'string' ? parseWaitMs(delay, 0) : null;
    if (waitMs !== null) return waitMs;
  }
  return null;
}

/** A message may repeat the text of a caller, who must not be able to pause a key for days. */
const LONGEST_IN_PROSE_MS = 3_600_000;

/** Google and OpenAI state the wait in the message, too: `in 6s`, `in 6 seconds`. No other text is read. */
function waitInProse(body: unknown, text: string | null): number | null {
  const [, duration, seconds] = IN_MESSAGE.exec(messageIn(body) ?? messageInCut(text ?? '') ?? '') ?? [];
  const waitMs = parseWaitMs(duration ?? seconds ?? '', 0);
  return waitMs === null ? null : Math.min(LONGEST_IN_PROSE_MS, waitMs);
}

function messageIn(body: unknown): string | null {
  const error = at(body, 'error');
  const message = at(error, 'message') ?? error ?? at(body, 'message');
  return typeof message === 'string' ? message : null;
}

const NO_NAMES: ReadonlySet<string> = new Set();
const MESSAGES = new Set(['error.message', 'message']);

/** Of a body that is longer than what was read of it. */
function messageInCut(text: string): string | null {
  const members = new JsonMembers({ paths: MESSAGES, counted: NO_NAMES, countedWhole: NO_NAMES, endings: NO_NAMES });
  // A comma ends a value that is complete.
  members.write(`${text},`);
  const message = members.value('error.message') ?? members.value('message');
  return typeof message === 'string' ? message : null;
}
