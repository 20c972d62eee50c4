// #region worker
import { folderArchive, runWorker } from 'headgate/stream';

type Log = (...values: readonly unknown[]) => void;

/** `endpoint` is left out on AWS. */
export async function countUsage(on: { table: string; endpoint?: string }, stopping: AbortSignal, log: Log) {
  await runWorker({
    ...on,
    archive: folderArchive('./archive'),
    signal: stopping,
    onProgress: ({ recordsPerSec, lagMs }) => log(recordsPerSec, lagMs),
    onTrimmed: ({ shardId }) => log(`lost changes of ${shardId}`),
    onError: (error, where) => log(where, error),
  });
}
// #endregion worker
