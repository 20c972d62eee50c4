import type { ComponentChildren } from 'preact';
import type { Load } from '../state/use-load.js';

export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
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
      {error === null ? null : <Failure message={error} onRetry={reload} />}
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
