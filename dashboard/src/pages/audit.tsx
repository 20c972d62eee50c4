import type { AuditView, Page } from '../api/types.js';
import { formatTime } from '../model/format.js';
import { nameOfLevel } from '../model/levels.js';
import { diffValues } from '../model/value-diff.js';
import { changed } from '../state/live.js';
import { navigate, route } from '../state/router.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { Choice, Field, Form } from '../ui/field.js';
import { EntityLink, Link } from '../ui/link.js';
import { DiffList } from '../ui/diff-list.js';
import { List } from '../ui/list.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';
import { useFields } from '../ui/use-fields.js';

const EVERY_MS = 10_000;
const SUBJECTS = [
  ['', 'everything'],
  ['entity', 'an entity'],
  ['resource', 'a resource'],
  ['system', 'the system'],
] as const;

/** Who changed what: the newest changes first, each with the values before and after. */
export function AuditPage() {
  const { of = '', name = '', after = '' } = route.value.params;
  const query = {
    order: 'desc',
    after,
    ...(of === 'entity' ? { entityId: name } : {}),
    ...(of === 'resource' ? { resource: name } : {}),
    ...(of === 'system' ? { system: 'true' } : {}),
  };
  const load = useLoad(
    `audit ${of}\n${name}\n${after}`,
    (signal) => api.value.get<Page<AuditView>>('/v1/audit', query, signal),
    { version: changed.value, everyMs: EVERY_MS },
  );
  return (
    <div class="page">
      <AuditForm of={of} name={name} />
      <Panel title={name === '' ? 'Changes' : `Changes of ${name}`}>
        <Loaded load={load}>
          {({ items, next }) =>
            items.length === 0 ? (
              <Empty>No changes.</Empty>
            ) : (
              <>
                <List
                  isOrdered
                  class="audit"
                  items={items.map((entry) => (
                    <AuditEntry key={entry.id} entry={entry} />
                  ))}
                />
                <p class="buttons">
                  {next === null ? null : (
                    <Link to="audit" params={{ of, name, after: next }}>
                      Older changes
                    </Link>
                  )}
                  {after === '' ? null : (
                    <Link to="audit" params={{ of, name }}>
                      Newest changes
                    </Link>
                  )}
                </p>
              </>
            )
          }
        </Loaded>
      </Panel>
    </div>
  );
}

function AuditForm({ of, name }: { readonly of: string; readonly name: string }) {
  const { values, field } = useFields({ of, name });
  const { of: subject } = values;
  const isNamed = subject === 'entity' || subject === 'resource';
  return (
    <Form label="Choose changes" onSubmit={() => navigate('audit', { of: subject, name: isNamed ? values.name : '' })}>
      <Choice label="Changes of" {...field('of')} options={SUBJECTS} />
      {isNamed ? <Field label={subject === 'entity' ? 'Entity' : 'Resource'} {...field('name')} required /> : null}
      <button type="submit" class="primary">
        Show
      </button>
    </Form>
  );
}

/** Of what is no entity, as the store names it: `$SYSTEM`, `$RESOURCE:gpt-4`. */
function subjectText(subject: string): string {
  const [kind, resource = ''] = subject.split(/:(.*)/s);
  if (kind === '$RESOURCE') return nameOfLevel({ resource });
  return kind === '$SYSTEM' ? nameOfLevel({}) : subject;
}

function AuditEntry({ entry: { at, principal, action, subject, before, after } }: { readonly entry: AuditView }) {
  const lines = diffValues(before, after);
  const resource = lines.find(({ field }) => field === 'resource');
  const changes = lines.filter((line) => line !== resource && line.kind !== 'same');
  return (
    <li>
      <p class="audit-head">
        <span class="number muted">{formatTime(Date.parse(at))}</span>
        <strong>{action}</strong>
        {subject.startsWith('$') ? <span class="id">{subjectText(subject)}</span> : <EntityLink id={subject} />}
        {resource === undefined ? null : <span class="id">on {resource.after || resource.before}</span>}
        <span class="muted">by {principal ?? 'an unnamed process'}</span>
      </p>
      {changes.length === 0 ? <Empty>No field differs.</Empty> : null}
      <DiffList lines={changes} />
    </li>
  );
}
