import type { LlmApi } from '../request/llm-call.js';
import { EventLines } from './event-lines.js';
import { JsonMembers } from './json-members.js';
import { readAnswer, readEvent, type Usage, type UsageNews, USAGE_MEMBERS } from './usage.js';

/** Reads the usage out of the body of an answer, in whatever pieces it comes. Never throws: what is malformed is skipped. */
export interface UsageReader {
  readonly write: (text: string) => void;
  /** The end of the body: what is known is final. */
  readonly end: () => void;
  readonly usage: Usage | null;
  /** Whether the provider has stated the usage of the whole call. */
  readonly isFinal: boolean;
  /** The characters of output so far. */
  readonly outputCharacters: number;
}

/** The reader of a JSON answer. */
export function answerReader(api: LlmApi): UsageReader {
  const members = new JsonMembers(USAGE_MEMBERS[api]);
  let news: UsageNews = { usage: null, isFinal: false };
  return {
    write: (text) => members.write(text),
    end: () => {
      news = readAnswer(api, members, null);
    },
    get usage() {
      return news.usage;
    },
    get isFinal() {
      return news.isFinal && news.usage !== null;
    },
    get outputCharacters() {
      return members.characters;
    },
  };
}

/** Long enough for `[DONE]`. */
const MAX_START = 16;

/** The reader of server-sent events. */
export function streamReader(api: LlmApi): UsageReader {
  let members = new JsonMembers(USAGE_MEMBERS[api]);
  let start = '';
  let usage: Usage | null = null;
  let isFinal = false;
  let characters = 0;
  const lines = new EventLines({
    onData: (text) => {
      if (start.length < MAX_START) start += text.slice(0, MAX_START);
      members.write(text);
    },
    onEnd: () => {
      const news = readEvent(api, members, usage);
      usage = news.usage ?? usage;
      isFinal ||= usage !== null && (news.isFinal || start.trim() === '[DONE]');
      characters += members.characters;
      members = new JsonMembers(USAGE_MEMBERS[api]);
      start = '';
    },
  });
  return {
    write: (text) => lines.write(text),
    end: () => {
      lines.end();
      // A message of Anthropic that is cut states its input, and one token of output.
      isFinal ||= usage !== null && api !== 'anthropic';
    },
    get usage() {
      return usage;
    },
    get isFinal() {
      return isFinal;
    },
    get outputCharacters() {
      return characters + members.characters;
    },
  };
}
