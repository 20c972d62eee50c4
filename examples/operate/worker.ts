// #region worker
import { folderArchive, runWorker } from 'headgate/stream';

export async function countUsage(table: string, endpoint: string, stopping: AbortSignal): Promise<void> {
  await runWorker({
    table,
    endpoint, // left out on AWS
    archive: folderArchive('./archive'),
    signal: stopping,
    onProgress: ({ recordsPerSec, lagMs }) => console.log(recordsPerSec, lagMs),
    onTrimmed: ({ shardId }) => console.warn(`lost changes of ${shardId}`),
    onError: (error, where) => console.error(where, error),
  });
}
// #endregion worker
