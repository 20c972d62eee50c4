/** A process that makes administrative changes, and dies by its own hand right before the statement that it is told. */
import { runSteps } from '../support/processes/audit-script.js';
import { loadDeadlyDriver } from '../support/file/deadly-driver.js';

const [path = '', deadly = ''] = process.argv.slice(2);

await runSteps(path, 0, await loadDeadlyDriver(Number(deadly)));
process.disconnect();
