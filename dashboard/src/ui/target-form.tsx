import type { PageName } from '../model/route.js';
import { navigate, route } from '../state/router.js';
import { Field, Form } from './field.js';
import { useFields } from './use-fields.js';

interface TargetFormProps {
  readonly label: string;
  readonly page: PageName;
  readonly entityHint?: string;
  readonly resourceHint?: string;
  /** Known resources. */
  readonly resources?: readonly string[];
}

/** Chooses the entity and the resource of a page. */
export function TargetForm({ label, page, entityHint = '', resourceHint = '', resources = [] }: TargetFormProps) {
  const { entity = '', resource = '' } = route.value.params;
  const { values, field } = useFields({ entity, resource });
  return (
    <Form label={label} onSubmit={() => navigate(page, values)}>
      <Field label="Entity" {...field('entity')} hint={entityHint} />
      <Field label="Resource" {...field('resource')} hint={resourceHint} choices={resources} />
      <button type="submit" class="primary">
        Show
      </button>
    </Form>
  );
}
