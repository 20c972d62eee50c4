import type { Hono } from 'hono';
import { DASHBOARD_PATH, type DashboardFile, type DashboardFiles } from './dashboard-files.js';

/** Scripts, styles and requests of this server only; no inline script or style, no frame, no form. */
const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const SECURITY = {
  'content-security-policy': CSP,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
} as const;

const A_YEAR = 'public, max-age=31536000, immutable';

/** Adds the routes of the dashboard: its files by their hashed names, and one document for every page. */
export function addDashboard(router: Hono, files: DashboardFiles): void {
  const html = renderDocument(files);
  const document = (): Response =>
    new Response(html, {
      headers: { ...SECURITY, 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' },
    });
  router.get('/', redirectToDashboard);
  router.get(DASHBOARD_PATH, redirectToDashboard);
  router.get(`${DASHBOARD_PATH}/assets/:name`, (context) => {
    const file = files.get(context.req.param('name'));
    if (file === undefined) return context.notFound();
    return respondFile(file, context.req.header('accept-encoding') ?? '');
  });
  router.get(`${DASHBOARD_PATH}/`, document);
  router.get(`${DASHBOARD_PATH}/:page`, document);
}

function redirectToDashboard(): Response {
  return new Response(null, { status: 302, headers: { location: `${DASHBOARD_PATH}/` } });
}

function respondFile({ contentType, body, gzipped }: DashboardFile, accepted: string): Response {
  const isGzipped = /\bgzip\b/.test(accepted);
  return new Response(isGzipped ? gzipped : body, {
    headers: {
      ...SECURITY,
      'content-type': contentType,
      'cache-control': A_YEAR,
      vary: 'accept-encoding',
      ...(isGzipped ? { 'content-encoding': 'gzip' } : {}),
    },
  });
}

function renderDocument(files: DashboardFiles): string {
  const pathOf = (start: string, end: string): string => {
    const name = [...files.keys()].find((one) => one.startsWith(start) && one.endsWith(end));
    if (name === undefined) throw new Error(`The built dashboard has no file ${start}*${end}; run npm run build`);
    return `${DASHBOARD_PATH}/assets/${name}`;
  };
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Headgate</title>
<link rel="icon" href="${pathOf('icon-', '.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${pathOf('style-', '.css')}">
<script type="module" src="${pathOf('main-', '.js')}"></script>
</head>
<body><div id="app"></div><noscript>The dashboard needs JavaScript. The API does not: see /docs.</noscript></body>
</html>
`;
}
