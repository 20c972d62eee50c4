/** Pages outside `docs/` that the site has too. The README is its first page. */
const OF_ROOT = {
  'README.md': 'index.md',
  'CHANGELOG.md': 'changelog.md',
  'CONTRIBUTING.md': 'contributing.md',
  'SECURITY.md': 'security.md',
};

/** The path on the site of a file of the project; null: the site does not have it. */
export function sitePath(file) {
  if (Object.hasOwn(OF_ROOT, file)) return OF_ROOT[file];
  if (file === 'docs/README.md') return 'contents.md';
  if (!/^docs\/.*\.(?:md|png)$/.test(file)) return null;
  return file.slice('docs/'.length).replace(/\bREADME\.md$/, 'index.md');
}
