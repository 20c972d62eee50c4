import { useState } from 'preact/hooks';
import type { AuditView, Page } from '../api/types.js';
import { formatTime } from '../model/format.js';
import { diffValues } from '../model/value-diff.js';
import { changed } from '../state/live.js';
import { navigate, route } from '../state/router.js';
import { api } from '../state/session.js';
import { useLoad } from '../state/use-load.js';
import { Choice, Field, Form } from '../ui/field.js';
import { EntityLink } from '../ui/link.js';
import { DiffList } from '../ui/diff-list.js';
import { Panel } from '../ui/panel.js';
import { Empty, Loaded } from '../ui/states.js';

const LAST = 100;
/** The server reads all changes to find the last ones, so that it is not asked often. */
const EVERY_MS = 30_000;
const SUBJECTS = [
  ['', 'everything'],
  ['entity', 'an entity'],
  ['resource', 'a resource'],
  ['system', 'the system'],
] as const;

/** Who changed what: the newest changes first, each with the values before and after. */
export function AuditPage() {
  const { of = '', name = '' } = route.value.params;
  const query = {
    ...(of === 'entity' ? { entityId: name } : {}),
    ...(of === 'resource' ? { resource: name } : {}),
    ...(of === 'system' ? { system: 'true' } : {}),
  };
  const load = useLoad(
    `audit ${of}\n${name}`,
    (signal) => api.value.get<Page<AuditView>>('/v1/audit', { ...query, last: String(LAST) }, signal),
    { version: changed.value, everyMs: EVERY_MS },
  );
  return (
    <div class="page">
      <AuditForm key={`${of}\n${name}`} of={of} name={name} />
      <Panel
        title={`The last ${LAST} changes${name === '' ? '' : ` of ${name}`}`}
        scope="store"
        actions={
          <button type="button" class="small" onClick={load.reload}>
            Read again
          </button>
        }
      >
        <Loaded load={load}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty>No changes.</Empty>
            ) : (
              <ol class="audit">
                {items.toReversed().map((entry) => (
                  <AuditEntry key={entry.id} entry={entry} />
                ))}
              </ol>
            )
          }
        </Loaded>
      </Panel>
    </div>
  );
}

function AuditForm({ of, name }: { readonly of: string; readonly name: string }) {
  const [subject, setSubject] = useState(of);
  const [text, setText] = useState(name);
  const isNamed = subject === 'entity' || subject === 'resource';
  return (
    <Form label="Choose changes" onSubmit={() => navigate('audit', { of: subject, name: isNamed ? text.trim() : '' })}>
      <Choice label="Changes of" value={subject} options={SUBJECTS} onChange={setSubject} />
      {isNamed ? (
        <Field label={subject === 'entity' ? 'Entity' : 'Resource'} value={text} onInput={setText} required />
      ) : null}
      <button type="submit" class="primary">
        Show
      </button>
    </Form>
  );
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
        {subject.startsWith('$') ? <span class="id">{subject}</span> : <EntityLink id={subject} />}
        {resource === undefined ? null : <span class="id">on {resource.after || resource.before}</span>}
        <span class="muted">by {principal ?? 'an unnamed process'}</span>
      </p>
      {changes.length === 0 ? <Empty>No field differs.</Empty> : null}
      <DiffList lines={changes} />
    </li>
  );
}
