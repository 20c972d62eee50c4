import type { LlmApi } from '../request/llm-call.js';
import { EventLines } from './event-lines.js';
import { JsonMembers } from './json-members.js';
import { readAnswer, readEvent, type Usage, type UsageNews, USAGE_MEMBERS } from './usage.js';

/** The size of output that has passed. */
export interface SeenOutput {
  readonly characters: number;
  /** At least as many as its tokens, for every tokenizer. */
  readonly bytes: number;
}

/** Reads the usage out of the body of an answer, in whatever pieces it comes. Never throws: what is malformed is skipped. */
export interface UsageReader {
  readonly write: (text: string) => void;
  /** The end of the body: what is known is final. */
  readonly end: () => void;
  readonly usage: Usage | null;
  /** Whether the provider has stated the usage of the whole call. */
  readonly isFinal: boolean;
  /** Whether the answer says that it has ended. A body that a proxy cuts may end as a whole one does. */
  readonly isWhole: boolean;
  /** The output so far. */
  readonly seen: SeenOutput;
}

/** The reader of a JSON answer. */
export function answerReader(api: LlmApi): UsageReader {
  const members = new JsonMembers(USAGE_MEMBERS[api]);
  let news: UsageNews = { usage: null, isFinal: false, isLast: false };
  return {
    write: (text) => members.write(text),
    end: () => {
      news = readAnswer(api, members, null);
    },
    get usage() {
      return news.usage === 'unreadable' ? null : news.usage;
    },
    get isFinal() {
      return news.isFinal && news.usage !== null && news.usage !== 'unreadable';
    },
    get isWhole() {
      return news.isLast;
    },
    get seen() {
      return { characters: members.characters, bytes: members.bytes };
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
  let isUnreadable = false;
  let isFinal = false;
  let isWhole = false;
  let [characters, bytes] = [0, 0];
  const lines = new EventLines({
    onData: (text) => {
      if (start.length < MAX_START) start += text.slice(0, MAX_START);
      members.write(text);
    },
    onEnd: () => {
      const news = readEvent(api, members, usage);
      if (news.usage === 'unreadable') isUnreadable = true;
      else usage = news.usage ?? usage;
      const isDone = start.trim() === '[DONE]';
      isFinal ||= usage !== null && (news.isFinal || isDone);
      isWhole ||= news.isLast || isDone;
      characters += members.characters;
      bytes += members.bytes;
      members = new JsonMembers(USAGE_MEMBERS[api]);
      start = '';
    },
  });
  return {
    write: (text) => lines.write(text),
    end: () => {
      lines.end();
      // What a stream that is cut has stated is the usage so far.
      isFinal ||= usage !== null && isWhole;
    },
    get usage() {
      return usage;
    },
    get isFinal() {
      return isFinal && !isUnreadable;
    },
    get isWhole() {
      return isWhole;
    },
    get seen() {
      return { characters: characters + members.characters, bytes: bytes + members.bytes };
    },
  };
}
