import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { accessSync, constants } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

/** How a daemon is started. */
export interface DaemonOptions {
  /** Its configuration, TOML. */
  config?: string;
  /** Where it listens; port 0 picks one. */
  listen?: string;
  /** A directory with what an earlier one left; else a new one. */
  home?: string;
}

/** A real daemon with a state directory of its own. */
export interface Daemon {
  /** Such as `http://127.3.20.7:40123` */
  url: string;
  /** Its scratch directory. */
  home: string;
  /** An empty directory in it for sessions. */
  project: string;
  /** Ends it and waits until it is gone; its directory stays. */
  stop: (signal?: NodeJS.Signals) => Promise<void>;
  /** Ends it, if it runs, and removes its directory. */
  remove: () => Promise<void>;
}

/** Starts a daemon; the caller removes it. */
export async function startDaemon(options: DaemonOptions = {}): Promise<Daemon> {
  const home = options.home ?? (await mkdtemp(join(tmpdir(), "acpd-web-")));
  const config = join(home, "config.toml");
  const project = join(home, "project");
  await mkdir(project, { recursive: true });
  if (options.config !== undefined || options.home === undefined) await writeFile(config, options.config ?? "");
  const child = spawn(binary(), ["serve", "--listen", options.listen ?? `${ownHost()}:0`, "--state-dir", join(home, "state"), "--config", config], {
    cwd: home,
    env: { ...process.env, ACPD_WEB_DIR: resolve(import.meta.dirname, "../dist") },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const url = await address(child);
  const stop = async (signal: NodeJS.Signals = "SIGTERM"): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  };
  const remove = async (): Promise<void> => {
    await stop();
    // What was killed may still write there.
    await rm(home, { recursive: true, force: true, maxRetries: 20 });
  };
  return { url, home, project, stop, remove };
}

/** An address of the daemon's own on loopback: on another, its port may be taken by anybody between its end and its next start. */
function ownHost(): string {
  if (process.platform !== "linux") return "127.0.0.1";
  return [127, ...Array.from({ length: 3 }, () => randomInt(1, 255))].join(".");
}

/** What the daemon says first: where it listens. */
async function address(child: ChildProcess): Promise<string> {
  const said: string[] = [];
  child.stderr?.on("data", (bytes: Buffer) => said.push(bytes.toString()));
  if (child.stdout === null) throw new Error("no stdout");
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /^listening on (\S+)/.exec(line);
    if (found?.[1] !== undefined) return found[1];
  }
  throw new Error(`the daemon did not start:\n${said.join("")}`);
}

/** `ACPD_BIN`, or what `cargo build` made. */
export function binary(): string {
  const path = process.env["ACPD_BIN"] ?? resolve(import.meta.dirname, "../../target/debug/acpd");
  try {
    accessSync(path, constants.X_OK);
  } catch {
    throw new Error(`there is no program at ${path}: run cargo build, or name one in ACPD_BIN`);
  }
  return path;
}
