import { posix } from 'node:path';
import { sitePath } from './site-path.js';

/**
 * The text of a page for the site: links lead to pages of the site, comments are removed. A link to a file that the site
 * does not have, such as a source file, becomes its text. `exists` tells whether the project has a file.
 */
export function convertPage(file, text, exists) {
  const target = sitePath(file);
  const link = (whole, label, href) => {
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
        : part.replaceAll(/<!--[^]*?-->\n*/g, '').replaceAll(/\[((?:[^\][]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, link),
    )
    .join('');
}
