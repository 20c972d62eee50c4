import type { Operation } from '../operation.js';

/** A page that lists every operation, without scripts. The OpenAPI document has the details. */
export function renderDocs(operations: readonly Operation[], version: string): string {
  const groups = new Set(operations.map(({ group }) => group));
  const sections = [...groups]
    .map((group) =>
      renderGroup(
        group,
        operations.filter((one) => one.group === group),
      ),
    )
    .join('\n');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Headgate API</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>Headgate API <small>version ${escapeHtml(version)}</small></h1>
<p>JSON over HTTP. Send a token as <code>Authorization: Bearer hg_...</code> if the server has tokens. The complete
description is <a href="/openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
${sections}
</main>
</body>
</html>
`;
}

function renderGroup(group: string, members: readonly Operation[]): string {
  const rows = members.map(
    ({ method, path, role, summary }) =>
      `<tr><td><code>${method.toUpperCase()} ${escapeHtml(path)}</code></td><td>${role}</td><td>${escapeHtml(summary)}</td></tr>`,
  );
  return `<h2>${escapeHtml(group)}</h2>
<table>
<thead><tr><th scope="col">route</th><th scope="col">role</th><th scope="col">what it does</th></tr></thead>
<tbody>
${rows.join('\n')}
</tbody>
</table>`;
}

const STYLE = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; }
main { max-width: 64rem; margin: 0 auto; padding: 1.5rem; }
h2 { margin: 2rem 0 0.5rem; text-transform: capitalize; }
small { opacity: 0.6; font-weight: normal; }
table { width: 100%; border-collapse: collapse; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.75rem 0.4rem 0; border-bottom: 1px solid #8884; }
code { font-size: 0.9em; overflow-wrap: anywhere; }
`;

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
