import { posix } from 'node:path';
import { sitePath } from './site-path.js';

/** The text of a link may have brackets, and an image with its address. */
const LINK = /\[((?:[^\][]|\[[^\]]*\](?:\([^)\s]+\))?)*)\]\(([^)\s]+)\)/g;

/**
 * The text of a page for the site: links lead to pages of the site, comments are removed. A link to a file that the site
 * does not have, such as a source file, becomes its text. An `<img>` becomes an image of markdown, because the site shows
 * no HTML of pages. `exists` tells whether the project has a file.
 */
export function convertPage(file, text, exists) {
  const target = sitePath(file);
  const link = (whole, shown, href) => {
    // The text of a link may be an image.
    const label = shown.replaceAll(LINK, link);
    if (/^(?:[a-z]+:|#)/.test(href)) return whole;
    const [path, anchor] = href.split('#');
    const meant = posix.join(posix.dirname(file), path);
    if (!exists(meant)) throw new Error(`${file} links to ${href}, which does not exist`);
    const found = sitePath(meant.replace(/\/$/, '/README.md'));
    if (found === null) return label;
    const relative = posix.relative(posix.dirname(target), found);
    return `[${label}](${relative.startsWith('.') ? '' : './'}${relative}${anchor === undefined ? '' : `#${anchor}`})`;
  };
  // Blocks of code stay as they are.
  return text
    .split(/(^```[^]*?^```$)/m)
    .map((part, at) =>
      at % 2 === 1
        ? part
        : part
            .replaceAll(/<!--[^]*?-->\n*/g, '')
            .replaceAll(/<img [^>]*src="([^"]+)" alt="([^"]*)">/g, '![$2]($1)')
            .replaceAll(LINK, link),
    )
    .join('');
}
