interface Component {
  readonly name: string;
  readonly group?: string;
  readonly version: string;
  readonly purl: string;
  readonly scope?: string;
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

interface Sbom {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies?: unknown;
}

/** The names of the bundled packages, which the file of their licences lists. */
export function bundledIn(licences: string): readonly string[] {
  return licences
    .split(/^-{80}$/m)
    .slice(1)
    .map((part) => part.trim().split('\n', 1)[0] ?? '');
}

/**
 * A CycloneDX document of what the package contains. npm knows the bundled packages only as development dependencies, so
 * that `npm sbom --omit dev` would leave out all code that is not ours: this keeps of its full list what is bundled.
 */
export function sbomOfPackage(full: Sbom, bundled: readonly string[], name: string): Sbom {
  const components = bundled.map((wanted) => {
    const found = full.components.find(({ purl }) => purl.startsWith(`pkg:npm/${wanted.replace('@', '%40')}@`));
    if (found === undefined) throw new Error(`npm sbom does not list ${wanted}, which is bundled`);
    const properties = found.properties?.filter(({ name: key }) => key !== 'cdx:npm:package:development') ?? [];
    return { ...found, scope: 'required', properties };
  });
  const { component } = full.metadata;
  const ref = component.purl.replace('pkg:npm/', '');
  const dependencies = [
    { ref, dependsOn: components.map(({ purl }) => decodeURIComponent(purl.replace('pkg:npm/', ''))) },
  ];
  return { ...full, metadata: { ...full.metadata, component: { ...component, name } }, components, dependencies };
}
