import * as v from 'valibot';
import { operation } from '../operation.js';

export const liveOperations = [
  operation({
    id: 'events',
    group: 'live',
    method: 'get',
    path: '/v1/events',
    role: 'admin',
    wholeStore: true,
    summary: 'Decisions, outages and changes of this server as server-sent events.',
    answer: v.pipe(v.string(), v.description('text/event-stream')),
    handle: ({ events, signal }) => Promise.resolve({ body: '', stream: events.stream(signal) }),
  }),
] as const;
