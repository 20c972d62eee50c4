import { useRef, useState } from 'preact/hooks';
import type { ConfigView, Level, LevelView } from '../api/types.js';
import { kindOf, type KnownLevels, nameOfLevel, parseLimitLines } from '../model/levels.js';
import { api } from '../state/session.js';
import { ActionResult } from '../ui/action-result.js';
import { Area, Choice, focusOn, Form } from '../ui/field.js';
import { List } from '../ui/list.js';
import { useAction } from '../ui/use-action.js';
import { ChangePreview } from './limits-preview.js';

interface LevelCardProps {
  readonly level: Level;
  readonly config: ConfigView;
  /** Whether this is the level whose limits apply. */
  readonly applies: boolean;
  /** The next level that has limits: they apply while this level has none. */
  readonly weaker: LevelView | null;
  /** Every level that has limits: whom a change concerns depends on them. */
  readonly all: KnownLevels;
  readonly onChanged: () => void;
}

/** One level: its limits, and a form that changes them after a preview. */
export function LevelCard({ level, config, applies, weaker, all, onChanged }: LevelCardProps) {
  const [isEdited, setIsEdited] = useState(false);
  const wasEdited = useRef(false);
  wasEdited.current ||= isEdited;
  const action = useAction();
  const kind = kindOf(level);
  return (
    <article class={applies ? 'level-card applies' : 'level-card'} aria-label={kind}>
      <h3>
        {kind} {applies ? <span class="tag ok">applies</span> : null}
      </h3>
      <p class="id muted">{nameOfLevel(level)}</p>
      {config.limits.length === 0 ? <p class="muted">no limits</p> : null}
      <List
        class="plain"
        items={config.limits.map(({ text }) => (
          <li key={text}>
            <code>{text}</code>
          </li>
        ))}
      />
      {config.onUnavailable === null ? null : <p class="muted">in an outage: {config.onUnavailable}</p>}
      {isEdited ? (
        <LevelEditor
          level={level}
          config={config}
          weaker={weaker}
          all={all}
          isRunning={action.isRunning}
          onCancel={() => setIsEdited(false)}
          onApply={(limits, onUnavailable) =>
            action.run(async () => {
              await checkUnchanged(level, config, onChanged);
              await writeLevel(level, limits, onUnavailable);
              setIsEdited(false);
              onChanged();
              return `The limits of ${nameOfLevel(level)} were changed.`;
            })
          }
        />
      ) : (
        <button
          ref={wasEdited.current ? focusOn : null}
          type="button"
          class="small"
          aria-label={`Edit the level ${kind}`}
          onClick={() => {
            action.clear();
            setIsEdited(true);
          }}
        >
          Edit
        </button>
      )}
      <ActionResult action={action} />
    </article>
  );
}

/** The limits are replaced as a whole: what another operator has written since the preview would be lost without a word. */
async function checkUnchanged(level: Level, shown: ConfigView, onChanged: () => void): Promise<void> {
  const stored = await api.value.get<ConfigView>('/v1/config', { ...level });
  if (JSON.stringify(stored) === JSON.stringify(shown)) return;
  onChanged();
  throw new Error(
    `The limits of ${nameOfLevel(level)} were changed meanwhile. Nothing was written: read the changes again.`,
  );
}

/** A level without limits is removed, so that the next level applies. The system keeps its outage policy. */
async function writeLevel(level: Level, limits: readonly string[], onUnavailable: string): Promise<void> {
  const query = { ...level };
  if (limits.length === 0 && kindOf(level) !== 'system') await api.value.send('DELETE', '/v1/config', { query });
  else {
    const policy = onUnavailable === '' ? {} : { onUnavailable };
    await api.value.send('PUT', '/v1/config', { query, body: { limits, replace: true, ...policy } });
  }
}

interface LevelEditorProps extends Pick<LevelCardProps, 'level' | 'config' | 'weaker' | 'all'> {
  readonly isRunning: boolean;
  readonly onCancel: () => void;
  readonly onApply: (limits: readonly string[], onUnavailable: string) => void;
}

function LevelEditor({ level, config, weaker, all, isRunning, onCancel, onApply }: LevelEditorProps) {
  const before = config.limits.map(({ text }) => text);
  const [begun] = useState(before.join('\n'));
  const [text, setText] = useState(begun);
  const [policy, setPolicy] = useState(config.onUnavailable ?? '');
  const { limits: after, wrong } = parseLimitLines(text);
  return (
    <Form label={`Edit ${kindOf(level)}`} onSubmit={() => onApply(after, policy)}>
      {before.join('\n') === begun ? null : (
        <p class="notice warn" role="status">
          Changed since you began. Now: {before.join(' ') || 'no limits'}
        </p>
      )}
      <Area
        label="Limits, one a line"
        isFocused
        rows={4}
        value={text}
        onInput={setText}
        hint="rpm:100/min  tpm:10000/min:50000  slots:20/concurrent"
      />
      {kindOf(level) === 'system' ? (
        <Choice
          label="In an outage"
          value={policy}
          options={[
            ['', config.onUnavailable === null ? 'as the server says' : 'unchanged'],
            ['block', 'block'],
            ['allow', 'allow'],
            ['local', 'local'],
          ]}
          onInput={setPolicy}
        />
      ) : null}
      {wrong.length === 0 ? (
        <ChangePreview level={level} before={before} after={after} weaker={weaker} all={all} />
      ) : (
        <p class="preview" role="status" aria-label="Preview">
          Not a limit: {wrong.join(', ')}
        </p>
      )}
      <div class="buttons">
        <button type="submit" class="primary" disabled={isRunning}>
          Apply
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </Form>
  );
}
