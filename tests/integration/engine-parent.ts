import { startEngine } from '../../src/testing/dynamodb/index.js';

/** A process that starts an engine, says where it is, and then waits to be killed, or ends without stopping it. */
const engine = await startEngine('dynoxide');
process.send?.({ endpoint: engine.endpoint });
if (process.argv[2] === 'leave') process.disconnect();
else process.channel?.ref();
