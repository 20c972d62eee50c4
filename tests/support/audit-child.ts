/** A process that makes administrative changes, and dies by its own hand right before the statement that it is told. */
import { runSteps } from './audit-script.js';
import { loadDeadlyDriver } from './deadly-driver.js';

const [path = '', deadly = ''] = process.argv.slice(2);

await runSteps(path, 0, await loadDeadlyDriver(Number(deadly)));
process.disconnect();
