import { runReconciler } from '../../backends/dynamodb/reconciler/loop.js';
import type { Archive } from '../../backends/dynamodb/stream/archive/archive.js';
import { folderArchive } from '../../backends/dynamodb/stream/archive/folder-archive.js';
import { s3Archive } from '../../backends/dynamodb/stream/archive/s3-archive.js';
import { runWorker } from '../../backends/dynamodb/stream/worker/worker.js';
import type { WorkerProgress } from '../../backends/dynamodb/stream/worker/worker-progress.js';
import type { StoreAction } from '../define-command.js';
import type { WorkerShape } from '../shapes.js';
import { requireDynamoDB } from './dynamodb-address.js';

interface WorkerOptions {
  readonly archive?: string;
  readonly once?: boolean;
  /** `--no-reconcile` */
  readonly reconcile: boolean;
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;
const PROGRESS_MS = 1_000;
/** With `--once`, whoever waits for the end wants it soon. */
const PROGRESS_ONCE_MS = 50;

export const work: StoreAction<WorkerOptions> = async (
  { address, progress, say },
  _args,
  { archive, once = false, reconcile },
) => {
  const place = requireDynamoDB(address);
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  for (const signal of SIGNALS) process.once(signal, onSignal);
  const kept = archive === undefined ? undefined : archiveAt(archive);
  const trimmed: string[] = [];
  const reconciling = async (signal: AbortSignal): Promise<void> =>
    runReconciler({ ...place, signal, onError: (error) => say(`reconciling: ${reasonOf(error)}`) });
  let last: WorkerProgress | null = null;
  try {
    await runWorker({
      ...place,
      ...(kept === undefined ? {} : { archive: kept }),
      signal: stop.signal,
      ...(once ? { pollMs: PROGRESS_ONCE_MS } : {}),
      progressMs: once ? PROGRESS_ONCE_MS : PROGRESS_MS,
      onProgress: (told) => {
        last = told;
        progress(describe(told), 0);
        if (once && told.caughtUp) stop.abort();
      },
      onPoison: ({ reason, eventId }) => say(`record ${eventId ?? 'without an id'} was passed over: ${reason}`),
      onTrimmed: ({ shardId }) => {
        trimmed.push(shardId);
        say(`changes of shard ${shardId} were removed from the stream before they were counted: see usage rebuild`);
      },
      onError: (error, where) => say(`${where}: ${reasonOf(error)}`),
      alongside: reconcile && !once ? [reconciling] : [],
    });
  } finally {
    for (const signal of SIGNALS) process.removeListener(signal, onSignal);
    kept?.close?.();
  }
  const { records = 0, poison = 0, archived = 0, splits = 0 }: Partial<WorkerProgress> = last ?? {};
  const data: WorkerShape = { records, poison, archived, splits, trimmed };
  return {
    data,
    text: () => `stopped: ${records} records read, ${archived} archived, ${splits} splits, ${poison} passed over`,
  };
};

function describe({ recordsPerSec, lagMs, shards, records }: WorkerProgress): string {
  return `${recordsPerSec} records/s, ${(lagMs / 1_000).toFixed(1)} s behind, ${shards} shards, ${records} records so far`;
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function archiveAt(place: string): Archive {
  return place.startsWith('s3://') ? s3Archive({ bucket: place.slice('s3://'.length) }) : folderArchive(place);
}
