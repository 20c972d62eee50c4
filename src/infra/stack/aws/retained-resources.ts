import { parse } from 'yaml';

/** The logical ids of the resources that a template retains when the stack is deleted. */
export function retainedIn(template: string): readonly string[] {
  const resources = resourcesOf(template);
  return Object.keys(resources).filter((id) => {
    const policy = resources[id]?.DeletionPolicy;
    return policy === 'Retain' || policy === 'RetainExceptOnCreate';
  });
}

/**
 * A template that was deployed by hand may be YAML; JSON is a subset of YAML. An unreadable template retains nothing.
 */
function resourcesOf(template: string): Readonly<Record<string, { readonly DeletionPolicy?: string }>> {
  try {
    const read = parse(template, { logLevel: 'silent' }) as {
      Resources?: Record<string, { DeletionPolicy?: string }>;
    } | null;
    return read?.Resources ?? {};
  } catch {
    return {};
  }
}
