import { afterEach, expect, test, vi } from 'vitest';
import { EventHub } from './event-hub.js';

afterEach(() => vi.useRealTimers());

test('a client that does not read gets at most 1000 queued frames, and then the number of missed events', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const hub = new EventHub();
  const client = new AbortController();
  const reader = hub.stream(client.signal).getReader();
  for (let count = 0; count < 1_500; count++) hub.publish({ type: 'decision', data: { count } });
  vi.advanceTimersByTime(3_600_000);
  const frames: string[] = [];
  const read = async (): Promise<void> => {
    const { value } = await reader.read();
    frames.push(new TextDecoder().decode(value));
  };
  for (let count = 0; count < 1_000; count++) await read();
  hub.publish({ type: 'decision', data: 'next' });
  await read();
  expect(frames.at(-1)).toBe('event: missed\ndata: {"count":501}\n\n');
  client.abort();
  expect(hub.isHeard).toBe(false);
  expect(vi.getTimerCount()).toBe(0);
});

test('an event is encoded once for all streams', async () => {
  const hub = new EventHub();
  const streams = Array.from({ length: 3 }, () => hub.stream(new AbortController().signal));
  const encoded = vi.fn<() => object>(() => ({ entityId: 'user-1' }));
  hub.publish({ type: 'decision', data: { toJSON: encoded } });
  hub.publish({ type: 'decision', data: { entityId: 'user-2' } });
  hub.close();
  for (const stream of streams) {
    expect(await new Response(stream).text()).toMatch(
      /\n\nevent: decision\ndata: .*user-1.*\n\nevent: decision\ndata: .*user-2/,
    );
  }
  expect(encoded).toHaveBeenCalledTimes(1);
});
