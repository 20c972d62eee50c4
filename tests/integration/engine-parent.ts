import { startEngine } from '../../src/testing/dynamodb/index.js';

/**
 * A process that starts an engine, reports its endpoint, and then waits to be killed, or exits without stopping the
 * engine.
 */
const engine = await startEngine('dynoxide');
process.send?.({ endpoint: engine.endpoint });
if (process.argv[2] === 'leave') process.disconnect();
else process.channel?.ref();
