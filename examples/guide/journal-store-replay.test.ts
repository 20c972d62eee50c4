import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Backend, Page, PageRequest } from 'headgate';
import { describeBackend } from 'headgate/testing/backend';
import { afterAll, describe, expect, test } from 'vitest';
import { journal } from './journal-store.js';

const folder = mkdtempSync(join(tmpdir(), 'headgate-journal-'));
afterAll(() => rmSync(folder, { recursive: true }));

const opened = new Map<Backend, { readonly path: string; readonly now: () => number }>();

describeBackend('journal that is opened again after each case', {
  describe,
  test,
  create: ({ now }) => {
    const path = join(folder, randomUUID());
    const store = journal(path);
    opened.set(store, { path, now });
    return store;
  },
  dispose: async (store) => {
    const { path = '', now = Date.now } = opened.get(store) ?? {};
    await store.close();
    const again = journal(path);
    await again.open(1_000);
    expect(await contentOf(again, now())).toEqual(await contentOf(store, now()));
    await again.close();
  },
  inGroups: false,
});

/** All records of all namespaces that are active. */
async function contentOf(store: Backend, nowMs: number): Promise<readonly unknown[]> {
  const registry = { nowMs, timeoutMs: 1_000 };
  const namespaces = await everyPage((page) => store.namespaces.list(registry, page));
  const content: unknown[] = [...namespaces];
  for (const { id } of namespaces) {
    const call = { ...registry, namespaceId: id };
    content.push(
      await everyPage((page) => store.config.all(call, page)),
      await everyPage((page) => store.audit.list(call, null, page)),
      await everyPage((page) => store.leases.listAll(call, page)),
      await everyPage((page) => store.managed.list(call, page)),
    );
    const entities = await everyPage((page) => store.entities.list(call, page));
    content.push(entities);
    for (const entity of entities)
      content.push(await everyPage((page) => store.buckets.listOfEntity(call, entity.id, page)));
  }
  return content;
}

async function everyPage<T>(read: (page: PageRequest) => Page<T> | Promise<Page<T>>): Promise<readonly T[]> {
  const items: T[] = [];
  let after: string | null = null;
  do {
    const page: Page<T> = await read({ limit: 100, after });
    items.push(...page.items);
    after = page.next;
  } while (after !== null);
  return items;
}
