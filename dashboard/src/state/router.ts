import { computed, signal } from '@preact/signals';
import { buildAddress, type PageName, parseRoute, type Route } from '../model/route.js';

/** The address of the page, as data. */
export const route = signal<Route>(parseRoute(location.pathname, location.search));

/** The namespace that the address names; null: that of the token or of the server. */
export const namespace = computed(() => route.value.params['namespace'] ?? null);

/** The address of a page of the same namespace. */
export function addressOf(page: PageName, params: Readonly<Record<string, string>> = {}): string {
  return buildAddress(page, { ...params, namespace: params['namespace'] ?? namespace.value ?? '' });
}

export function navigate(
  page: PageName,
  params: Readonly<Record<string, string>> = {},
  how: 'push' | 'replace' = 'push',
): void {
  const address = addressOf(page, params);
  if (address === location.pathname + location.search) return;
  if (how === 'push') history.pushState(null, '', address);
  else history.replaceState(null, '', address);
  route.value = parseRoute(location.pathname, location.search);
}

/** Changes parameters of the current page. */
export function setParams(change: Readonly<Record<string, string>>, how: 'push' | 'replace' = 'push'): void {
  const { page, params } = route.peek();
  navigate(page, { ...params, ...change }, how);
}

export function startRouter(): void {
  addEventListener('popstate', () => {
    route.value = parseRoute(location.pathname, location.search);
  });
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (link === null || link.origin !== location.origin || !link.pathname.startsWith('/dashboard/')) return;
    if (link.hash !== '' || link.hasAttribute('download')) return;
    event.preventDefault();
    const { page, params } = parseRoute(link.pathname, link.search);
    navigate(page, params);
  });
}
