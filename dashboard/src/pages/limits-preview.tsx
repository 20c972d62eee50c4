import type { Level, LevelView } from '../api/types.js';
import { affectedBy, changesOf, kindOf } from '../model/levels.js';

interface ChangePreviewProps {
  readonly level: Level;
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly all: readonly LevelView[];
}

const MOST_NAMED = 8;

/** What a change would do, and for whom, before it is made. */
export function ChangePreview({ level, before, after, all }: ChangePreviewProps) {
  const changes = changesOf(before, after).filter((one) => one.before !== one.after);
  const { sentence, exceptions } = affectedBy(level, all);
  return (
    <div class="preview" role="status" aria-label="Preview">
      {changes.length === 0 ? <p class="muted">No limit changes.</p> : <strong>Changes</strong>}
      <ul class="diff">
        {changes.map(({ name, before: was, after: is }) => (
          <li key={name} class={was === null ? 'added' : is === null ? 'removed' : 'changed'}>
            {was === null ? null : <del>{was}</del>}
            {is === null ? null : <ins>{is}</ins>}
          </li>
        ))}
      </ul>
      {changes.length === 0 ? null : (
        <>
          <p>
            <strong>For whom:</strong> {sentence}
          </p>
          {exceptions.length === 0 ? null : (
            <p class="muted">
              Not for {exceptions.length} {exceptions.length === 1 ? 'level' : 'levels'} with limits of their own:{' '}
              {exceptions.slice(0, MOST_NAMED).join(', ')}
              {exceptions.length > MOST_NAMED ? ' …' : ''}
            </p>
          )}
          {after.length === 0 && kindOf(level) !== 'system' ? (
            <p>The next level that has limits applies then.</p>
          ) : null}
        </>
      )}
    </div>
  );
}
