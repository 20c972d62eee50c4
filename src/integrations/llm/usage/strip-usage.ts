import { EventLines } from './event-lines.js';
import { JsonMembers } from './json-members.js';
import { isUsageChunk, USAGE_MEMBERS } from './usage.js';

/** A longer event is no usage chunk, and is passed on in pieces. */
const MAX_EVENT = 65_536;
const END_OF_EVENT = /\r\n\r\n|\n\n|\r\r/g;

/** Passes a text of server-sent events on, without the chunk that only states the usage. */
export interface UsageStripper {
  /** The text that can be passed on now. */
  readonly write: (text: string) => string;
  /** The end of the body: the rest. */
  readonly end: () => string;
}

/**
 * The caller of a streamed chat completion that did not ask for the usage does not expect a chunk without a choice. An
 * event is kept until it is complete.
 */
export function usageStripper(): UsageStripper {
  let kept = '';
  let isPassing = false;
  return {
    write: (text) => {
      // The end of an event may be split between two pieces.
      const from = Math.max(0, kept.length - 3);
      kept += text;
      let passed = '';
      let start = 0;
      END_OF_EVENT.lastIndex = from;
      for (let end = END_OF_EVENT.exec(kept); end !== null; end = END_OF_EVENT.exec(kept)) {
        const event = kept.slice(start, end.index + end[0].length);
        if (isPassing || !statesOnlyUsage(event)) passed += event;
        isPassing = false;
        start += event.length;
      }
      kept = kept.slice(start);
      if (kept.length > MAX_EVENT) {
        isPassing = true;
        // The last characters may be the first half of the end of the event.
        passed += kept.slice(0, -3);
        kept = kept.slice(-3);
      }
      return passed;
    },
    end: () => {
      const rest = kept;
      kept = '';
      return isPassing || !statesOnlyUsage(rest) ? rest : '';
    },
  };
}

function statesOnlyUsage(event: string): boolean {
  if (!event.includes('"usage"')) return false;
  const members = new JsonMembers(USAGE_MEMBERS['openai-chat']);
  let events = 0;
  const lines = new EventLines({
    onData: (text) => members.write(text),
    onEnd: () => {
      events += 1;
    },
  });
  lines.write(event);
  lines.end();
  return events === 1 && isUsageChunk(members);
}
