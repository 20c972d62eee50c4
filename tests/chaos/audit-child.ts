/** A process that makes administrative changes and kills itself right before the given statement. */
import { runSteps } from '../support/processes/audit-script.js';
import { loadDeadlyDriver } from '../support/file/deadly-driver.js';

const [path = '', deadly = ''] = process.argv.slice(2);

await runSteps(path, 0, await loadDeadlyDriver(Number(deadly)));
process.disconnect();
