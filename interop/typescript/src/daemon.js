// `acpd serve` as a process: started for a test, stopped by its process id, and nothing of it left behind.
//
// It has one token, so that every client here shows that it can present one. Boundary: knows acpd as a program only.

import { execFile, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const ACPD = process.env.ACPD_BIN ?? fileURLToPath(new URL("../../../target/debug/acpd", import.meta.url));

// By this, processes of one daemon are known from those of another.
const MARK = "INTEROP_RUN";

export class Daemon {
  static async start() {
    const directory = await mkdtemp(join(tmpdir(), "acpd-interop-"));
    const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("ACPD_"));
    const env = {
      ...Object.fromEntries(kept),
      ACPD_CONFIG: join(directory, "config.toml"),
      ACPD_STORAGE_PATH: join(directory, "state"),
      ACPD_EXAMPLE_STATE: join(directory, "example"),
      [MARK]: directory,
    };
    await writeFile(env.ACPD_CONFIG, "[timeouts]\nstdin_grace = \"200ms\"\nterm_grace = \"500ms\"\n");
    const made = await promisify(execFile)(ACPD, ["token", "new", "interop", "--scope", "control"], { env });
    const child = spawn(ACPD, ["serve", "--listen", "127.0.0.1:0"], { env, stdio: ["ignore", "pipe", "inherit"] });
    const exited = new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code, signal) => resolve({ code, signal }));
    });
    const lines = createInterface({ input: child.stdout });
    const first = new Promise((resolve) => lines.once("line", resolve));
    const line = await Promise.race([first, exited]);
    const address = /^listening on http:\/\/(\S+)$/.exec(line)?.[1];
    if (address === undefined) throw new Error(`no daemon: ${JSON.stringify(line)}`);
    return new Daemon(child, exited, directory, address, made.stdout.trim());
  }

  constructor(child, exited, directory, address, token) {
    Object.assign(this, { child, exited, directory, address, token });
    this.headers = { Authorization: `Bearer ${token}` };
  }

  // SIGTERM; it must end well and leave no process.
  async stop() {
    this.child.kill("SIGTERM");
    const exit = await this.exited;
    const left = await carrying(`${MARK}=${this.directory}`);
    await rm(this.directory, { recursive: true, force: true, maxRetries: 20 });
    if (exit.code !== 0) throw new Error(`the daemon ended with ${JSON.stringify(exit)}`);
    if (left.length > 0) throw new Error(`left behind: ${left.join(", ")}`);
  }

  // A session as REST shows it.
  async session(id) {
    const answer = await fetch(`http://${this.address}/v1/sessions/${id}`, { headers: this.headers });
    if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
    return answer.json();
  }
}

// The processes that have a variable in their environment, as Linux shows it.
async function carrying(variable) {
  const found = [];
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    // Gone meanwhile, or somebody else's.
    const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
    if (environment.split("\0").includes(variable)) found.push(pid);
  }
  return found;
}
