import type { ComponentChildren } from 'preact';
import { hears } from '../state/live.js';
import type { Load } from '../state/use-load.js';

export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** Says that there is nothing, if the page gets the events that would have named it. */
export function NoEvents({ children }: { readonly children: ComponentChildren }) {
  return <Empty>{hears.value ? children : 'Not known: the page is not connected.'}</Empty>;
}

export function Failure({ message, onRetry }: { readonly message: string; readonly onRetry?: () => void }) {
  return (
    <p class="failure" role="alert">
      {message}{' '}
      {onRetry === undefined ? null : (
        <button type="button" class="small" onClick={onRetry}>
          Try again
        </button>
      )}
    </p>
  );
}

interface LoadedProps<T> {
  readonly load: Load<T>;
  readonly children: (data: T) => ComponentChildren;
}

/** Shows what was read, or that it is being read, or why it could not be read. */
export function Loaded<T>({ load: { data, error, reload }, children }: LoadedProps<T>) {
  return (
    <>
      {error === null ? null : (
        <Failure message={data === null ? error : `${error} (what follows was read before)`} onRetry={reload} />
      )}
      {data === null ? error === null ? <Loading /> : null : children(data)}
    </>
  );
}

export function Loading() {
  return (
    <p class="empty" role="status">
      Reading…
    </p>
  );
}
