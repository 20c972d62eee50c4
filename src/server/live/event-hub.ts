import type { LimiterEvent } from '../../limiter/events/limiter-event.js';

/** Something that happened, as the event stream shows it: a type and plain data. */
export interface ServerEvent {
  readonly type: string;
  readonly data: unknown;
}

type Listener = (event: ServerEvent) => void;

/** How many events wait for a slow client. Beyond it the client is told that events are missing. */
const MAX_QUEUED = 1_000;

/** How often an idle stream sends a comment, so that proxies keep the connection and dead clients are noticed. */
const HEARTBEAT_MS = 15_000;

/** Passes the events of this process to the clients that listen. */
export class EventHub {
  readonly #listeners = new Set<Listener>();
  readonly #streams = new Set<() => void>();
  /** The event that is being sent. All streams share its bytes, because there may be thousands of them. */
  #sent: { readonly event: ServerEvent; readonly bytes: Uint8Array } | null = null;

  /** Whether a listener exists. Check it before building an event. */
  get isHeard(): boolean {
    return this.#listeners.size > 0;
  }

  /** The listener of a limiter. */
  readonly onEvent = (event: LimiterEvent): void => {
    if (!this.isHeard) return;
    const { type, ...data } = event;
    this.publish({ type, data: 'error' in data ? { ...data, error: String(data.error) } : data });
  };

  /** Sends an event to all subscribers. */
  publish(event: ServerEvent): void {
    for (const listener of this.#listeners) listener(event);
    this.#sent = null;
  }

  /** Returns the function that ends the subscription. */
  subscribe(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #bytesOf(event: ServerEvent): Uint8Array {
    if (this.#sent?.event !== event) this.#sent = { event, bytes: encoder.encode(frame(event)) };
    return this.#sent.bytes;
  }

  /** Ends all streams: a server that shuts down must not wait for clients that only listen. */
  close(): void {
    for (const end of this.#streams) end();
  }

  /**
   * The events from now on as server-sent events, until the client leaves or the hub closes. `show`: what is sent of an
   * event. `onEnd`: called once, when the stream has ended.
   */
  stream(
    signal: AbortSignal,
    isWanted: (event: ServerEvent) => boolean = () => true,
    show: (event: ServerEvent) => ServerEvent = (event) => event,
    onEnd: () => void = ignore,
  ): ReadableStream<Uint8Array> {
    let end = ignore;
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          let missed = 0;
          const send = (text: string): void => controller.enqueue(encoder.encode(text));
          const unsubscribe = this.subscribe((event) => {
            if (!isWanted(event)) return;
            if ((controller.desiredSize ?? 0) <= 0) {
              missed += 1;
              return;
            }
            if (missed > 0) send(frame({ type: 'missed', data: { count: missed } }));
            missed = 0;
            controller.enqueue(this.#bytesOf(show(event)));
          });
          const heartbeat = setInterval(() => {
            // A client that reads nothing needs no sign that the server is there.
            if ((controller.desiredSize ?? 0) > 0) send(': still here\n\n');
          }, HEARTBEAT_MS);
          heartbeat.unref();
          end = (): void => {
            if (!this.#streams.delete(end)) return;
            unsubscribe();
            clearInterval(heartbeat);
            signal.removeEventListener('abort', end);
            onEnd();
            try {
              controller.close();
            } catch {
              // The client has cancelled the stream already.
            }
          };
          this.#streams.add(end);
          signal.addEventListener('abort', end);
          if (signal.aborted) end();
          // The first bytes make a browser report the connection as open.
          else send(': connected\n\n');
        },
        cancel: () => end(),
      },
      new CountQueuingStrategy({ highWaterMark: MAX_QUEUED }),
    );
  }
}

const encoder = new TextEncoder();

function ignore(): void {}

function frame({ type, data }: ServerEvent): string {
  return `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`;
}
