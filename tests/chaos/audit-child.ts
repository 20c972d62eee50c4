/** A process that makes administrative changes and kills itself right before the given statement. */
import { runSteps } from '../support/processes/audit-script.js';
import { loadSelfKillingDriver } from '../support/file/self-killing-driver.js';

const [path = '', killBefore = ''] = process.argv.slice(2);

await runSteps(path, 0, await loadSelfKillingDriver(Number(killBefore)));
process.disconnect();
