/** Logical ids of what a template tells CloudFormation to leave when the stack is deleted. */
export function retainedIn(template: string): readonly string[] {
  const resources = resourcesOf(template);
  return Object.keys(resources).filter((id) => {
    const policy = resources[id]?.DeletionPolicy;
    return policy === 'Retain' || policy === 'RetainExceptOnCreate';
  });
}

function resourcesOf(template: string): Readonly<Record<string, { readonly DeletionPolicy?: string }>> {
  try {
    const { Resources = {} } = JSON.parse(template) as { Resources?: Record<string, { DeletionPolicy?: string }> };
    return Resources;
  } catch {
    // Deployed by hand, as YAML: nothing is said about it beforehand, and the deletion itself tells.
    return {};
  }
}
