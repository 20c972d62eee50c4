import type { Archive } from '../../../backends/dynamodb/stream/archive/archive.js';
import type { WorkerProgress } from '../../../backends/dynamodb/stream/worker/worker-progress.js';
import { addExamples, type Definition, onStore, type StoreAction } from '../../run/define-command.js';
import { requireDynamoDB } from '../../run/require-dynamodb.js';
import { stopOnSignal } from '../../terminal/interruption.js';
import { reasonOf } from '../../../core/reason-of.js';

/** `--json` of `worker`, when it has stopped */
export interface WorkerShape {
  readonly records: number;
  /** Records that could not be decoded. */
  readonly poison: number;
  readonly archived: number;
  readonly splits: number;
  /** Shards of the stream that lost records before they were read. */
  readonly trimmed: readonly string[];
}

export const define: Definition = (command, context) => {
  addExamples(command, [
    'worker --store dynamodb://limits',
    'worker --store dynamodb://limits --archive s3://my-archive',
    'worker --store dynamodb://limits --archive ./archive --once',
  ])
    .option(
      '--archive <place>',
      'where to archive audit records that expire: a folder or s3://bucket; by default nowhere',
    )
    .option('--no-reconcile', 'do not reclaim expired leases')
    .option('--once', 'stop at the end of the stream instead of waiting for more')
    .action(onStore(context, work));
};

interface WorkerFlags {
  readonly archive?: string;
  readonly once?: boolean;
  /** `--no-reconcile` */
  readonly reconcile: boolean;
}

const PROGRESS_MS = 1_000;
/** With `--once` the command ends at a report of progress: short intervals let it end soon. */
const PROGRESS_ONCE_MS = 50;

const work: StoreAction<WorkerFlags> = async (
  { address, progress, say },
  _args,
  { archive, once = false, reconcile },
) => {
  const place = requireDynamoDB(address);
  const [{ runReconciler }, { runWorker }] = await Promise.all([
    import('../../../backends/dynamodb/reconciler/loop.js'),
    import('../../../backends/dynamodb/stream/worker/worker.js'),
  ]);
  const kept = archive === undefined ? undefined : await archiveAt(archive);
  const trimmed: string[] = [];
  const reconciling = async (signal: AbortSignal): Promise<void> =>
    runReconciler({ ...place, signal, onError: (error) => say(`reconciling: ${reasonOf(error)}`) });
  let last: WorkerProgress | null = null;
  try {
    await stopOnSignal(async (stop) =>
      runWorker({
        ...place,
        ...(kept === undefined ? {} : { archive: kept }),
        signal: stop.signal,
        ...(once ? { pollMs: PROGRESS_ONCE_MS } : {}),
        progressMs: once ? PROGRESS_ONCE_MS : PROGRESS_MS,
        onProgress: (now) => {
          last = now;
          progress(describe(now), 0);
          if (once && now.caughtUp) stop.abort();
        },
        onPoison: ({ reason, eventId }) => say(`record ${eventId ?? 'without an id'} was skipped: ${reason}`),
        onTrimmed: ({ shardId }) => {
          trimmed.push(shardId);
          say(
            `changes of shard ${shardId} left the stream before they were counted: \`headgate usage rebuild\` adds them`,
          );
        },
        onError: (error, where) => say(`${where}: ${reasonOf(error)}`),
        alongside: reconcile && !once ? [reconciling] : [],
      }),
    );
  } finally {
    kept?.close?.();
  }
  const { records = 0, poison = 0, archived = 0, splits = 0 }: Partial<WorkerProgress> = last ?? {};
  const data: WorkerShape = { records, poison, archived, splits, trimmed };
  return {
    data,
    text: () => `stopped: ${records} records read, ${archived} archived, ${splits} splits, ${poison} skipped`,
  };
};

function describe({ recordsPerSec, lagMs, shards, records }: WorkerProgress): string {
  return `${recordsPerSec} records/s, ${(lagMs / 1_000).toFixed(1)} s behind, ${shards} shards, ${records} records so far`;
}

const S3 = 's3://';

async function archiveAt(place: string): Promise<Archive> {
  if (place.startsWith(S3)) {
    const { s3Archive } = await import('../../../backends/dynamodb/stream/archive/s3-archive.js');
    return s3Archive({ bucket: place.slice(S3.length) });
  }
  const { folderArchive } = await import('../../../backends/dynamodb/stream/archive/folder-archive.js');
  return folderArchive(place);
}
