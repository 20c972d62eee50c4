import { posix } from 'node:path';
import { sitePath } from './site-path.js';
import { readPage } from './stage.js';

/** The groups of the sidebar: a folder each, and the page whose links say in which order its pages are read. */
const FOLDERS = [
  { text: 'Guide', folder: 'docs/guide', order: 'docs/README.md' },
  { text: 'Stores', folder: 'docs/backends', order: 'docs/README.md' },
  { text: 'Operate', folder: 'docs/operate', order: 'docs/operate/README.md' },
  { text: 'Reference', folder: 'docs/reference', order: 'docs/reference/README.md' },
  {
    text: 'Project',
    folder: 'docs',
    order: 'docs/README.md',
    others: ['CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'],
  },
  { text: 'Decisions', folder: 'docs/adr', order: 'docs/adr/README.md' },
];

/** The sidebar of the whole site. Its texts are the titles of the pages. */
export function buildSidebar(files) {
  const pages = files.filter((file) => file.endsWith('.md'));
  return FOLDERS.map(({ text, folder, order, others = [] }, at) => {
    const linked = linksOf(order);
    const inside = pages.filter((file) => posix.dirname(file) === folder);
    const rank = (file) =>
      file.endsWith('README.md') ? -1 : linked.includes(file) ? linked.indexOf(file) : linked.length;
    const items = [...inside.toSorted((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1)), ...others];
    // VitePress opens the group of the page that is shown.
    return { text, collapsed: at > 0, items: items.map((file) => ({ text: titleOf(file), link: linkOf(file) })) };
  });
}

/** The first page of each group. */
export function buildNav(sidebar) {
  return sidebar.map(({ text, items: [first] }) => ({ text, link: first.link, activeMatch: activeMatch(first.link) }));
}

function activeMatch(link) {
  const [, folder] = /^(\/\w+\/)/.exec(link) ?? [];
  return folder === undefined ? '^/[^/]+$' : `^${folder}`;
}

function linkOf(file) {
  return `/${sitePath(file).replace(/(?:\bindex)?\.md$/, '')}`;
}

function titleOf(file) {
  const [, title = file] = /^# (.*)$/m.exec(readPage(file)) ?? [];
  return title.replaceAll('`', '');
}

function linksOf(page) {
  return Array.from(readPage(page).matchAll(/\]\(([^)\s#]+)/g), ([, href]) => posix.join(posix.dirname(page), href));
}
