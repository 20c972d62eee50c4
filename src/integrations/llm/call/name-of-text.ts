import { createHash } from 'node:crypto';
import { checkEntityId, checkResource } from '../../../core/identifiers.js';
import { encodeCharacters } from '../../encode-characters.js';

interface Rules {
  readonly check: (text: string) => void;
  readonly excluded: RegExp;
  readonly longest: number;
}

const RULES: Readonly<Record<'entityId' | 'resource', Rules>> = {
  entityId: { check: checkEntityId, excluded: /^\$|[^!-"$-~]/gu, longest: 256 },
  resource: { check: checkResource, excluded: /^[_$]|[^!-"$-}]/gu, longest: 128 },
};

/**
 * The name of an entity or a resource that a request states. Models and users may have names that Headgate does not: their
 * calls are limited under an encoded name, or under a hash if that is too long. A name that is allowed stays as it is.
 */
export function nameOfText(kind: 'entityId' | 'resource', text: string): string {
  const { check, excluded, longest } = RULES[kind];
  if (typeof text !== 'string' || text === '' || isAllowed(check, text)) return text;
  const encoded = encodeCharacters(text, excluded);
  return encoded.length <= longest ? encoded : `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

function isAllowed(check: Rules['check'], text: string): boolean {
  try {
    check(text);
    return true;
  } catch {
    return false;
  }
}
