/** What a release depends on. */
export interface Situation {
  readonly version: string;
  readonly changelog: string;
  readonly branch: string;
  /** The output of `git status --porcelain`. */
  readonly changes: string;
  readonly repository: unknown;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Why this version cannot be published now, in sentences. A dry run shows them and continues. */
export function refusals({ version, changelog, branch, changes, repository, env }: Situation): readonly string[] {
  return [
    ...(branch === 'main' ? [] : [`The branch is ${branch || 'none'}: releases are made from main.`]),
    ...(changes === '' ? [] : ['The tree has changes that are not committed.']),
    ...changelogProblems(version, changelog),
    ...(repository === undefined
      ? [
          'package.json has no `repository`: provenance needs it, and on npm the links of the README that lead outside the package do too.',
        ]
      : []),
    ...(env['ACTIONS_ID_TOKEN_REQUEST_URL'] || env['SIGSTORE_ID_TOKEN']
      ? []
      : [
          'This is no CI with an OIDC identity: `npm publish --provenance` works only there (.github/workflows/release.yml).',
        ]),
  ];
}

/** The version must have a section with a date, and nothing may be left under "Unreleased". */
export function changelogProblems(version: string, changelog: string): readonly string[] {
  const sections = new Map(
    changelog
      .split(/^## /m)
      .slice(1)
      .map((section) => {
        const [title = '', ...body] = section.split('\n');
        return [title.trim(), body.join('\n').trim()] as const;
      }),
  );
  const titles = [...sections.keys()];
  const dated = titles.some((title) => title.startsWith(`${version} (`) && /\(\d{4}-\d{2}-\d{2}\)$/.test(title));
  return [
    ...(dated ? [] : [`CHANGELOG.md has no section "## ${version} (year-month-day)".`]),
    ...(sections.get('Unreleased') ? ['CHANGELOG.md has changes under "Unreleased": move them to the version.'] : []),
  ];
}
