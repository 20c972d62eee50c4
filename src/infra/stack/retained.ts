import { parse } from 'yaml';

/** Logical ids of what a template tells CloudFormation to leave when the stack is deleted. */
export function retainedIn(template: string): readonly string[] {
  const resources = resourcesOf(template);
  return Object.keys(resources).filter((id) => {
    const policy = resources[id]?.DeletionPolicy;
    return policy === 'Retain' || policy === 'RetainExceptOnCreate';
  });
}

/** One that was deployed by hand may be YAML, of which JSON is a part; what cannot be read at all says nothing. */
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
