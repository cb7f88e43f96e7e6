// `acpd serve` as a process: started for a test, killed and started again on the same address and state, and ended by
// its process id, also when the test fails.
//
// Boundary: knows acpd as a program only. Everything that it writes is in a directory of its own.

import { type ChildProcess, type ChildProcessByStdio, execFile, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { access, constants, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { AcpdClient, type AcpdClientOptions, type Fetch } from "acpd-client";

const BUILT = fileURLToPath(new URL("../../../target/debug/acpd", import.meta.url));
const ACPD = process.env["ACPD_BIN"] ?? BUILT;

type Serving = ChildProcessByStdio<null, Readable, Readable>;

/** What is told of a token that is to be made, such as `["--scope", "observe"]`. */
type TokenRules = readonly string[];

export class Daemon {
  readonly #env: NodeJS.ProcessEnv;
  /** The one that runs, also while it starts. */
  #child: Serving;

  private constructor(
    /** A directory for the test; it holds the state, too. */
    readonly directory: string,
    /** Such as `http://127.3.20.7:40123`. */
    readonly url: string,
    readonly tokens: Readonly<Record<string, string>>,
    env: NodeJS.ProcessEnv,
    child: Serving,
  ) {
    this.#env = env;
    this.#child = child;
  }

  /** Starts a daemon that gives out these tokens; without any, all may do everything. `more` is configuration. */
  static async start(rules: Readonly<Record<string, TokenRules>> = {}, more = ""): Promise<Daemon> {
    await access(ACPD, constants.X_OK).catch(() => {
      throw new Error(`${ACPD} is no program: run \`cargo build\`, or name one in ACPD_BIN`);
    });
    const directory = await mkdtemp(join(tmpdir(), "acpd-client-"));
    const env = await environment(directory, more);
    const tokens: Record<string, string> = {};
    for (const [name, rule] of Object.entries(rules)) {
      const { stdout } = await promisify(execFile)(ACPD, ["token", "new", name, ...rule], { env });
      tokens[name] = stdout.trim();
    }
    const child = serve(env, `${ownHost()}:0`);
    return new Daemon(directory, await address(child), tokens, env, child);
  }

  /** Starts one for a test, at whose end it is stopped, however that ends. */
  static async forTest(...how: Parameters<typeof Daemon.start>): Promise<Daemon> {
    const daemon = await Daemon.start(...how);
    onTestFinished(() => daemon.stop());
    return daemon;
  }

  /** A client, under a token if one is named. */
  client(token?: string, options: Partial<AcpdClientOptions> = {}): AcpdClient {
    const secret = token === undefined ? undefined : this.tokens[token];
    return new AcpdClient({ url: this.url, ...(secret === undefined ? {} : { token: secret }), ...options });
  }

  /** A client at the Unix socket. */
  owner(): AcpdClient {
    return new AcpdClient({ url: this.url, fetch: fetchOver(join(this.directory, "state", "acpd.sock")) });
  }

  /** kill -9, and gone. */
  async kill(): Promise<void> {
    await end(this.#child, "SIGKILL");
  }

  /** Starts it again, where it was. */
  async restart(): Promise<void> {
    this.#child = serve(this.#env, new URL(this.url).host);
    await address(this.#child);
  }

  async stop(): Promise<void> {
    await end(this.#child, "SIGTERM");
    // What was killed may still write there.
    await rm(this.directory, { recursive: true, force: true, maxRetries: 20 });
  }
}

/** An address of the daemon's own on loopback: on another, its port may be taken by anybody between its end and its next start. */
function ownHost(): string {
  if (process.platform !== "linux") return "127.0.0.1";
  return [127, ...Array.from({ length: 3 }, () => randomInt(1, 255))].join(".");
}

async function environment(directory: string, more: string): Promise<NodeJS.ProcessEnv> {
  const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("ACPD_"));
  const config = join(directory, "config.toml");
  await writeFile(config, '[timeouts]\nstdin_grace = "200ms"\nterm_grace = "500ms"\n' + more);
  return {
    ...Object.fromEntries(kept),
    ACPD_CONFIG: config,
    ACPD_STORAGE_PATH: join(directory, "state"),
    // One that is killed ends its agents, unless the test's configuration is asked for something else.
    ...(more.includes("[continuity]") ? {} : { ACPD_CONTINUITY_KEEP: "0s" }),
    ACPD_EXAMPLE_STATE: join(directory, "example"),
  };
}

function serve(env: NodeJS.ProcessEnv, listen: string): Serving {
  return spawn(ACPD, ["serve", "--listen", listen], { env, stdio: ["ignore", "pipe", "pipe"] });
}

/** Where it listens; it is ended when it does not. */
async function address(child: Serving): Promise<string> {
  const complaints: string[] = [];
  child.stderr.setEncoding("utf8").on("data", (text: string) => complaints.push(text));
  const exited = once(child, "exit").then(() => undefined);
  const line = await Promise.race([firstLine(child.stdout), exited]);
  const url = /^listening on (http:\S+)$/.exec(line ?? "")?.[1];
  if (url !== undefined) return url;
  await end(child, "SIGKILL");
  throw new Error(`no daemon: ${line ?? ""}\n${complaints.join("")}`);
}

async function firstLine(output: NodeJS.ReadableStream): Promise<string> {
  const lines = createInterface({ input: output });
  const [line] = (await once(lines, "line")) as [string];
  return line;
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill(signal);
  await exited;
}

// Requests with and without a body of text, and answers of JSON: all that is needed over the socket here.
function fetchOver(socketPath: string): Fetch {
  return async (url, { method = "GET", headers, body }) => {
    const given = Object.fromEntries(new Headers(headers));
    const call = request(url, { socketPath, method, headers: given }).end(body ?? undefined);
    const [answer] = (await once(call, "response")) as [IncomingMessage];
    const text = (await answer.setEncoding("utf8").toArray()).join("");
    return new Response(text === "" ? null : text, { status: answer.statusCode ?? 0 });
  };
}
