import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/** The given port if no process on this machine listens on it, else null. Without a port: any free one. */
export async function freePort(): Promise<number>;
export async function freePort(port: number): Promise<number | null>;
export async function freePort(port = 0): Promise<number | null> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return null;
    throw error;
  }
  const address = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return address.port;
}
