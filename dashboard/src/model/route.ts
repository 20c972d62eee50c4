export const PAGES = ['overview', 'entity', 'usage', 'leases', 'limits', 'audit', 'try'] as const;

export type PageName = (typeof PAGES)[number];

/** Where the reader is. `params` is the state of the page: it is in the address, so that the address can be shared. */
export interface Route {
  readonly page: PageName;
  readonly params: Readonly<Record<string, string>>;
}

const BASE = '/dashboard/';

export function parseRoute(pathname: string, search: string): Route {
  const name = pathname.startsWith(BASE) ? pathname.slice(BASE.length) : '';
  const page = PAGES.find((one) => one === name) ?? 'overview';
  return { page, params: Object.fromEntries(new URLSearchParams(search)) };
}

/** The inverse of `parseRoute`. Empty parameters are left out. */
export function buildAddress(page: PageName, params: Readonly<Record<string, string>> = {}): string {
  const filled = Object.entries(params).filter(([, value]) => value !== '');
  const search = new URLSearchParams(filled).toString();
  return `${BASE}${page === 'overview' ? '' : page}${search === '' ? '' : `?${search}`}`;
}
