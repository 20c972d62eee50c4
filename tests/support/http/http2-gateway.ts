import { createServer, type IncomingHttpHeaders } from 'node:http';
import { type ClientHttp2Session, connect, constants, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { type AppServer, stopServer } from './app-server.js';

type Http2Listener = Parameters<typeof createHttp2Server>[1];

/**
 * Serves an app over HTTP/2. The tests ask in HTTP/1: a gateway passes each request on, and resets its stream when the
 * client leaves.
 */
export async function serveHttp2(app: NonNullable<Http2Listener>): Promise<AppServer> {
  const server = createHttp2Server(app);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return behindGateway((server.address() as AddressInfo).port, async () => {
    await new Promise((resolve) => server.close(resolve));
  });
}

/** An HTTP/1 server before an app that listens for HTTP/2 on a port of loopback. */
export async function behindGateway(port: number, stopApp: () => Promise<unknown>): Promise<AppServer> {
  const session: ClientHttp2Session = connect(`http://127.0.0.1:${port}`);
  const gateway = createServer((request, response) => {
    const { connection: _, host: __, ...headers }: IncomingHttpHeaders = request.headers;
    const stream = session.request({ ...headers, ':method': request.method, ':path': request.url });
    stream.on('error', () => response.destroy());
    stream.on('response', ({ ':status': status = 500, ...fields }) => {
      for (const [name, value] of Object.entries(fields)) if (value !== undefined) response.setHeader(name, value);
      response.writeHead(status);
      stream.pipe(response);
    });
    response.once('close', () => {
      if (!response.writableFinished) stream.close(constants.NGHTTP2_CANCEL);
    });
    request.pipe(stream);
  });
  await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`,
    async stop() {
      await stopServer(gateway);
      session.destroy();
      await stopApp();
    },
  };
}
