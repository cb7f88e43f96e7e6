// A way to a daemon that can be cut: a TCP proxy.

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

export class Cutter {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  #blocked = false;

  private constructor(server: Server, port: number, host: string) {
    this.#server = server.on("connection", (near: Socket) => {
      if (this.#blocked) {
        near.resetAndDestroy();
        return;
      }
      const far = connect(port, host);
      for (const [socket, other] of [[near, far], [far, near]] as const) {
        this.#sockets.add(socket);
        socket.pipe(other);
        socket.on("error", () => other.destroy()).on("close", () => this.#sockets.delete(socket) && other.destroy());
      }
    });
  }

  /** A way to what listens at this address. */
  static async to(url: string): Promise<Cutter> {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { hostname, port } = new URL(url);
    return new Cutter(server, Number(port), hostname);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Cuts all connections; new ones can be made. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Cuts all connections, and each new one until `unblock`. */
  block(): void {
    this.#blocked = true;
    this.cut();
  }

  unblock(): void {
    this.#blocked = false;
  }

  close(): void {
    this.#server.close();
    this.cut();
  }
}
