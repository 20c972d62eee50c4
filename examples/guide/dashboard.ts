// #region server
import { RateLimiter } from 'headgate';
import { createServer, EventHub, readDashboard } from 'headgate/server';

const events = new EventHub(); // the dashboard shows the decisions that it gets
const limiter = await RateLimiter.open({ onEvent: events.onEvent });
const server = createServer(limiter, { events, dashboard: readDashboard() });

const answer = async (request: Request) => server.fetch(request); // for the HTTP server of your own
// #endregion server

export { answer, limiter, server };
