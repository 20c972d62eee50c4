import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/** The given port if no process listens on it on this machine, else null. Without an argument: any free port. */
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
