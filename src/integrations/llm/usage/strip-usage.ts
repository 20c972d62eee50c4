import { EventLines } from './event-lines.js';
import { JsonMembers } from './json-members.js';
import { isUsageChunk, USAGE_MEMBERS } from './usage.js';

/** A longer event is no usage chunk, and is passed on in pieces. */
const MAX_EVENT = 65_536;
/** Two ends of a line. Servers that join texts of others mix their forms. */
const END_OF_EVENT = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)/g;

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
  /** What became of an event that ended with CR, the last of its piece: a following LF belongs to it. */
  let cut: 'passed' | 'left out' | null = null;
  return {
    write: (piece) => {
      const isRest = cut !== null && piece.startsWith('\n');
      const text = isRest ? piece.slice(1) : piece;
      let passed = isRest && cut === 'passed' ? '\n' : '';
      if (piece !== '') cut = null;
      // The end of an event may be split between two pieces.
      const from = Math.max(0, kept.length - 3);
      kept += text;
      let start = 0;
      END_OF_EVENT.lastIndex = from;
      for (let end = END_OF_EVENT.exec(kept); end !== null; end = END_OF_EVENT.exec(kept)) {
        const event = kept.slice(start, end.index + end[0].length);
        const isPassed = isPassing || !statesOnlyUsage(event);
        if (isPassed) passed += event;
        isPassing = false;
        start += event.length;
        if (start === kept.length && event.endsWith('\r')) cut = isPassed ? 'passed' : 'left out';
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
