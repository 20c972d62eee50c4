import { buildNav, buildSidebar } from '../site/sidebar.js';
import { PAGES, stagePages } from '../site/stage.js';

const sidebar = buildSidebar(stagePages());

/** The anchor of a heading as on GitHub, because the links of the pages are written for it. */
function slugify(heading) {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

// VitePress requires a default export.
// oxlint-disable-next-line import/no-default-export
export default {
  title: 'Headgate',
  description: 'Rate limits, token limits and concurrency slots that many processes share.',
  lang: 'en',
  // The site has no icon: without this line browsers ask for one.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  srcDir: PAGES,
  outDir: 'dist',
  cacheDir: 'node_modules/.vitepress',
  // The site may be opened from any folder of a server, so that its files have no fixed host.
  cleanUrls: false,
  lastUpdated: false,
  metaChunk: true,
  markdown: {
    html: false,
    // `{id}` in a heading is part of a path, not an attribute.
    attrs: { disable: true },
    anchor: { slugify },
    toc: { slugify },
    config: (md) => {
      const { text } = md.renderer.rules;
      // Braces in a text are not expressions of Vue.
      md.renderer.rules.text = (...args) => text(...args).replaceAll('{{', '{&#8203;{');
    },
  },
  themeConfig: {
    nav: buildNav(sidebar),
    sidebar,
    outline: { level: [2, 2] },
    search: { provider: 'local' },
    docFooter: { prev: 'Previous', next: 'Next' },
  },
};
