import { ValidationError } from '../../../../core/errors.js';
import { checkNamespace } from '../../../../core/identifiers.js';
import { registerNamespace } from '../../schema/create-table.js';
import { deadlineIn } from '../../../../machine-time.js';
import { buildNamespaceKey } from '../../table/keys.js';
import { REQUEST_MS, readItem, type Table } from '../../client/requests.js';
import { withRetries } from '../../schema/retry.js';

/** The namespace of records without one. */
const DEFAULT = 'default';

/**
 * The namespaces that records are converted to, by the namespace in their keys. Tables without namespaces have null
 * there. Constructors of zae-limiter 0.10 and later write under a name that is not a registered id.
 */
export interface TargetNamespaces {
  /** The id of the namespace; null: the name cannot be registered. */
  of(ns: string | null): string | null;
  /** Whether records with this key prefix move to another namespace. */
  isMoved(ns: string | null): boolean;
  /** The key prefixes of all records that move to a namespace, in the order in which they move. */
  sourcesOf(target: string): readonly (string | null)[];
}

/** What the keys of old records show about namespaces. */
export interface NamespaceSurvey {
  /** Namespaces in the keys of old records that are not registered ids. */
  readonly literals: ReadonlySet<string>;
  readonly hasRecordsWithoutNamespace: boolean;
}

/** `register`: create the missing namespaces. Otherwise they get ids that no record has. */
export async function findTargetNamespaces(
  table: Table,
  survey: NamespaceSurvey,
  register: boolean,
): Promise<TargetNamespaces> {
  const names = new Set([...survey.literals, ...(survey.hasRecordsWithoutNamespace ? [DEFAULT] : [])]);
  const ids = new Map<string, string | null>();
  for (const name of names) ids.set(name, await idOf(table, name, register));
  const of = (ns: string | null): string | null => {
    if (ns === null) return ids.get(DEFAULT) ?? null;
    return survey.literals.has(ns) ? (ids.get(ns) ?? null) : ns;
  };
  const moved = [...survey.literals, null];
  return {
    of,
    isMoved: (ns) => ns === null || survey.literals.has(ns),
    sourcesOf: (target) => moved.filter((ns) => of(ns) === target),
  };
}

async function idOf(table: Table, name: string, register: boolean): Promise<string | null> {
  try {
    checkNamespace(name);
  } catch (error) {
    if (error instanceof ValidationError) return null;
    throw error;
  }
  const item = await withRetries(async () => readItem(table, buildNamespaceKey(name), deadlineIn(REQUEST_MS)));
  const id = item?.['status']?.S === undefined || item['status'].S === 'active' ? item?.['namespace_id']?.S : undefined;
  // No id contains "#", so a read under this id finds nothing.
  return id ?? (register ? registerNamespace(table, name) : `#${name}`);
}
