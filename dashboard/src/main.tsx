import { render } from 'preact';
import { AppRoot } from './app-root.js';
import { startLive } from './state/live.js';
import { startRouter } from './state/router.js';
import { startSession } from './state/session.js';

startRouter();
startLive();
startSession();
const root = document.getElementById('app');
if (root !== null) render(<AppRoot />, root);
