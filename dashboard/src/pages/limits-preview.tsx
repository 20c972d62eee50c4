import { readPages } from '../api/http.js';
import type { BucketView, Level, LevelView } from '../api/types.js';
import { formatCount } from '../model/format.js';
import { affectedBy, changesOf, type KnownLevels, nameOfLevel } from '../model/levels.js';
import { bucketQueryOf, reachOf } from '../model/reach.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { List } from '../ui/list.js';
import { Loaded } from '../ui/states.js';

interface ChangePreviewProps {
  readonly level: Level;
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly weaker: LevelView | null;
  readonly all: KnownLevels;
}

const MOST_NAMED = 8;
/** The buckets of a level are read once, when its first change is typed. */
const MOST_COUNTED = 500;

/** What a change would do, and for whom, before it is made. */
export function ChangePreview({ level, before, after, weaker, all }: ChangePreviewProps) {
  const instead = weaker?.limits.map(({ text }) => text) ?? [];
  const isChanged = changesOf(before, after).some((one) => one.before !== one.after);
  // A level without limits leaves those of the next one in force, and replaces all of them when it gets its first.
  const [was, is] = [before, after].map((limits) => (limits.length === 0 ? instead : limits));
  const changes = isChanged ? changesOf(was ?? [], is ?? []).filter((one) => one.before !== one.after) : [];
  const { sentence, exceptions } = affectedBy(level, all.items);
  return (
    <div class="preview" role="status" aria-label="Preview">
      {changes.length === 0 ? <p class="muted">No limit changes.</p> : <strong>Changes of what applies</strong>}
      <List
        class="diff"
        items={changes.map(({ name, before: old, after: next }) => (
          <li key={name}>
            {old === null ? null : <del>{old}</del>}
            {next === null ? null : <ins>{next}</ins>}
          </li>
        ))}
      />
      {isChanged && (before.length === 0 || after.length === 0) ? (
        <p>
          {before.length === 0 ? 'Until now' : 'Then'}{' '}
          {weaker === null ? 'no stored limits apply' : `the limits of ${nameOfLevel(weaker.level)} apply`}. A level
          with limits replaces them as a whole.
        </p>
      ) : null}
      {!isChanged ? null : (
        <>
          <p>
            <strong>For whom:</strong> {sentence}
          </p>
          <ReachedBuckets level={level} all={all} />
          {exceptions.length === 0 ? null : (
            <p class="muted">
              Not for {exceptions.length} {exceptions.length === 1 ? 'level' : 'levels'} with limits of their own:{' '}
              {exceptions.slice(0, MOST_NAMED).join(', ')}
              {exceptions.length > MOST_NAMED ? ' …' : ''}
            </p>
          )}
        </>
      )}
    </div>
  );
}

/** How many buckets have the limits of the level now, as far as it is known without reading the whole store. */
function ReachedBuckets({ level, all }: Pick<ChangePreviewProps, 'level' | 'all'>) {
  const query = all.hasMore ? null : bucketQueryOf(level);
  const load = useLoad(query === null ? null : `reach ${JSON.stringify(query)}`, (signal) =>
    readPages<BucketView>(
      (after) => api.value.get('/v1/buckets', { ...query, limit: String(MOST_COUNTED), after }, signal),
      MOST_COUNTED,
    ),
  );
  if (query === null) {
    const why = all.hasMore ? 'there are too many levels' : 'the store has no list of all buckets';
    return <p class="muted">Buckets are not counted: {why}.</p>;
  }
  return (
    <Loaded load={load}>
      {({ items, hasMore }) => {
        const { buckets, entities } = reachOf(level, items, all.items);
        const of = entities === 1 ? '1 entity' : `${formatCount(entities)} entities`;
        return (
          <p>
            <strong>Buckets that it reaches:</strong> {hasMore ? 'at least ' : ''}
            {formatCount(buckets)}
            {buckets === 0 ? '. Nothing was taken yet.' : `, of ${of}.`}
          </p>
        );
      }}
    </Loaded>
  );
}
