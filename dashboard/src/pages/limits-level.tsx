import { useState } from 'preact/hooks';
import type { ConfigView, Level } from '../api/types.js';
import { kindOf, type KnownLevels, nameOfLevel, parseLimitLines } from '../model/levels.js';
import { api } from '../state/session.js';
import { ActionResult } from '../ui/action-result.js';
import { Area, Choice, Form } from '../ui/field.js';
import { useAction } from '../ui/use-action.js';
import { ChangePreview } from './limits-preview.js';

interface LevelCardProps {
  readonly level: Level;
  readonly config: ConfigView;
  /** Whether this is the level whose limits apply. */
  readonly applies: boolean;
  /** Every level that has limits: whom a change concerns depends on them. */
  readonly all: KnownLevels;
  readonly onChanged: () => void;
}

/** One level: its limits, and a form that changes them after a preview. */
export function LevelCard({ level, config, applies, all, onChanged }: LevelCardProps) {
  const [isEdited, setIsEdited] = useState(false);
  const action = useAction();
  const kind = kindOf(level);
  return (
    <article class={applies ? 'level-card applies' : 'level-card'} aria-label={kind}>
      <h3>
        {kind} {applies ? <span class="tag ok">applies</span> : null}
      </h3>
      <p class="id muted">{kind === 'system' ? 'every entity, every resource' : nameOfLevel(level)}</p>
      {config.limits.length === 0 ? <p class="muted">no limits</p> : null}
      <ul class="plain">
        {config.limits.map(({ text }) => (
          <li key={text}>
            <code>{text}</code>
          </li>
        ))}
      </ul>
      {config.onUnavailable === null ? null : <p class="muted">in an outage: {config.onUnavailable}</p>}
      {isEdited ? (
        <LevelEditor
          level={level}
          config={config}
          all={all}
          isRunning={action.isRunning}
          onCancel={() => setIsEdited(false)}
          onApply={(limits, onUnavailable) =>
            action.run(async () => {
              await writeLevel(level, limits, onUnavailable);
              setIsEdited(false);
              onChanged();
              return `The limits of ${nameOfLevel(level)} were changed.`;
            })
          }
        />
      ) : (
        <button type="button" class="small" aria-label={`Edit the level ${kind}`} onClick={() => setIsEdited(true)}>
          Edit
        </button>
      )}
      <ActionResult action={action} />
    </article>
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

interface LevelEditorProps {
  readonly level: Level;
  readonly config: ConfigView;
  readonly all: KnownLevels;
  readonly isRunning: boolean;
  readonly onCancel: () => void;
  readonly onApply: (limits: readonly string[], onUnavailable: string) => void;
}

function LevelEditor({ level, config, all, isRunning, onCancel, onApply }: LevelEditorProps) {
  const before = config.limits.map(({ text }) => text);
  const [text, setText] = useState(before.join('\n'));
  const [policy, setPolicy] = useState(config.onUnavailable ?? '');
  const after = parseLimitLines(text);
  return (
    <Form label={`Edit ${kindOf(level)}`} onSubmit={() => onApply(after, policy)}>
      <Area
        label="Limits, one a line"
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
          onChange={setPolicy}
        />
      ) : null}
      <ChangePreview level={level} before={before} after={after} all={all} />
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
