// The package as it is published: packed, installed into an empty directory, and used there by the examples and by every
// sample of the README, whose types are checked against the packed ones.

import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Daemon } from "./daemon.js";

const run = promisify(execFile);
const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
// In the order in which the README has them.
const SAMPLES = ["events", "ends", "acp", "errors"];

let daemon: Daemon;
let directory: string;
beforeAll(async () => {
  daemon = await Daemon.start();
  directory = await installed();
}, 300_000);
afterAll(async () => {
  await daemon?.stop();
  if (directory !== undefined) await rm(directory, { recursive: true, force: true, maxRetries: 20 });
});

/** An empty directory with the packed package in it, the examples and the samples of the README. */
async function installed(): Promise<string> {
  const empty = await mkdtemp(join(tmpdir(), "acpd-client-packed-"));
  const { stdout } = await run("npm", ["pack", "--silent", "--pack-destination", empty], { cwd: PACKAGE });
  await writeFile(join(empty, "package.json"), '{ "private": true, "type": "module" }');
  // From what is installed here: no registry is asked.
  const own = ["@agentclientprotocol/sdk", "zod"].map((name) => join(PACKAGE, "node_modules", name));
  const flags = ["--offline", "--install-links", "--no-audit", "--no-fund", "--ignore-scripts"];
  await run("npm", ["install", ...flags, join(empty, stdout.trim()), ...own], { cwd: empty });
  for (const name of await readdir(join(PACKAGE, "examples"))) {
    await copyFile(join(PACKAGE, "examples", name), join(empty, name));
  }
  const readme = await readFile(join(PACKAGE, "README.md"), "utf8");
  const samples = Array.from(readme.matchAll(/^```js\n([^]*?)^```$/gm), ([, code = ""]) => code);
  expect(samples.length).toBe(SAMPLES.length);
  await mkdir(join(empty, "readme"));
  for (const [index, code] of samples.entries()) await writeFile(join(empty, "readme", `${SAMPLES[index]}.js`), code);
  return empty;
}

const program = async (name: string, ...words: string[]) => {
  const env = { ...process.env, ACPD_URL: daemon.url };
  return (await run(process.execPath, [name, ...words], { cwd: directory, env, timeout: 60_000 })).stdout;
};

// issue 12: `npm pack` installs and runs in an empty directory
test("what is packed is the library and its types", async () => {
  const files = await readdir(join(directory, "node_modules", "acpd-client"), { recursive: true });
  expect(files).toEqual(expect.arrayContaining(["LICENSE", "README.md", "dist/index.js", "dist/index.d.ts"]));
  expect(files.filter((file) => /test|\.map$/.test(file) || (file.endsWith(".ts") && !file.endsWith(".d.ts")))).toEqual([]);
});

// inspector: SDK: types tested
test("its types are those that the samples need", { timeout: 300_000 }, async () => {
  const options = { target: "ES2022", module: "NodeNext", strict: true, skipLibCheck: true };
  const checked = { noEmit: true, allowJs: true, checkJs: true };
  const compilerOptions = { ...options, ...checked, types: ["node"], typeRoots: [join(PACKAGE, "node_modules/@types")] };
  await writeFile(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.js", "readme/*.js"] }));
  await run(process.execPath, [join(PACKAGE, "node_modules/typescript/bin/tsc")], { cwd: directory });
});

describe("a sample of the README", () => {
  test("events", async () => {
    expect(await program("readme/events.js")).toBe(
      "agent_message_chunk\nthe turn ended: end_turn\nthe session ended: client_close\n",
    );
  });
  test("ends", async () => {
    expect(await program("readme/ends.js")).toMatch(/told: terminated\n[^]*cause: 'client_terminate'/);
  });
  test("acp", async () => {
    expect(await program("readme/acp.js")).toMatch(/^tool_call\n[^]*\nend_turn\n$/);
  });
  test("errors", async () => {
    expect(await program("readme/errors.js")).toBe("there is none\n");
  });
});

// issue 12: examples that CI runs
describe("an example", () => {
  test("prompt", async () => {
    expect(await program("prompt.js", "good morning")).toBe("good morning\nend_turn\n");
  });
  test("permissions", async () => {
    const said = await program("permissions.js", "ask edit Change it\nask execute Run it");
    expect(said).toMatch(/Change it: allow_once\n[^]*Run it: reject_once\n[^]*\nend_turn\n$/);
  });
  test("ends", async () => {
    await daemon.client().createSession({ cwd: directory, prompt: "crash", title: "A crash" });
    for await (const session of daemon.client().listSessions({ q: "A crash" })) {
      await daemon.client().waitForEnd(session.sessionId);
    }
    expect(await program("ends.js")).toMatch(/^[0-9a-f-]{36} {2}example {2}error, agent_crash, code 1 {2}A crash$/m);
  });
});
