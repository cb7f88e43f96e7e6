import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import { binary } from "./daemon";
import { expect, expectAccessible, test } from "./harness";

const secret = (name: string) => `acpd-web-${name}-0123456789abcdef0123456789abcdef`;
const token = (name: string, scope: string, sees = "all") =>
  `[tokens.${name}]\nhash = "sha256:${createHash("sha256").update(secret(name)).digest("hex")}"\nscope = "${scope}"\nsees = "${sees}"\n`;

test.use({ daemonOptions: { config: token("eyes", "observe") + token("blind", "observe", "own") + token("boss", "admin") } });

// inspector: What it does (token entry where the daemon needs one; kept in session storage only)
test("a token is asked for, kept in this tab, and nowhere else", async ({ page, site, context }) => {
  await page.goto(site);
  await expect(page.getByRole("heading", { name: "A token is needed" })).toBeVisible();
  await expectAccessible(page);
  await page.getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Go on" }).click();
  await expect(page.getByRole("alert")).toContainText("does not know this token");
  await page.getByLabel("Token").fill(secret("boss"));
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "No session yet" })).toBeVisible();
  await page.reload();
  await expect(page.getByRole("heading", { name: "No session yet" })).toBeVisible();
  expect(await page.evaluate(() => JSON.stringify({ ...localStorage }) + document.cookie)).not.toContain(secret("boss"));
  expect(page.url()).not.toContain(secret("boss"));
  const other = await context.newPage();
  await other.goto(site);
  await expect(other.getByRole("heading", { name: "A token is needed" })).toBeVisible();
});

// inspector: What it does (says what to do): the command that the page names makes a token which lets in
test("the command that the page names does what the page says", async ({ page, site, daemon, call }) => {
  await page.goto(site);
  const command = await page.locator("code").filter({ hasText: "token new" }).innerText();
  expect(command).toMatch(/^acpd token new /);
  const env = { ...process.env, ACPD_CONFIG: join(daemon.home, "config.toml"), XDG_STATE_HOME: join(daemon.home, "elsewhere") };
  const { stdout } = await promisify(execFile)(binary(), command.split(" ").slice(1), { env });
  const made = stdout.trim();
  await call("POST", "/v1/reload", undefined, { Authorization: `Bearer ${secret("boss")}`, "Content-Type": "application/json" });
  await page.getByLabel("Token").fill(made);
  await page.getByRole("button", { name: "Go on" }).click();
  await expect(page.getByRole("heading", { name: "No session yet" })).toBeVisible();
});

// inspector: Daemon view (tokens by name and scope, never the secret)
test("tokens are listed without their secrets", async ({ page, site }) => {
  await page.goto(`${site}/#/daemon`);
  await page.getByLabel("Token").fill(secret("boss"));
  await page.keyboard.press("Enter");
  await expect(page.getByRole("row").filter({ hasText: "eyes" })).toContainText("observe");
  await expectAccessible(page);
  expect(await page.content()).not.toMatch(/sha256|0123456789abcdef/);
});

/** A single-use code, which the daemon gives over its Unix socket only, as `acpd open` asks for it. */
async function codeOf(home: string): Promise<string> {
  const asked = request({ socketPath: join(home, "state", "acpd.sock"), method: "POST", path: "/v1/codes", headers: { "Content-Type": "application/json" } });
  asked.end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  return ((await json(answer)) as { code: string }).code;
}

// inspector: What it does (`acpd open`: the code is in the fragment, which is erased from the history at once)
test("a code lets the page in, once, and is gone from the address", async ({ page, site, daemon, call }) => {
  const boss = { Authorization: `Bearer ${secret("boss")}` };
  const { sessionId } = await call<{ sessionId: string }>("POST", "/v1/sessions", { cwd: daemon.project }, boss);
  const code = await codeOf(daemon.home);
  await page.goto(`${site}/#code=${code}&to=${encodeURIComponent(`/sessions/${sessionId}`)}`);
  await expect(page.getByRole("navigation", { name: "Views" }).getByRole("link")).toHaveCount(4);
  await expect(page).toHaveURL(`${site}/#/sessions/${sessionId}`);
  await page.goto("about:blank");
  await page.goBack();
  await expect(page).toHaveURL(`${site}/#/sessions/${sessionId}`);
  await page.goto(`${site}/?again#code=${code}`);
  await expect(page.getByRole("alert")).toHaveText("This link was good once; acpd open makes another.");
  await expect(page).toHaveURL(`${site}/?again#/sessions`);
});

// contract 7.3, whoami: an observer is offered nothing that it may not do
test("an observer sees no way to do what it may not", async ({ page, site, call, daemon }) => {
  const boss = { Authorization: `Bearer ${secret("boss")}` };
  await call("POST", "/v1/sessions", { cwd: daemon.project, prompt: "title Seen\nhello" }, boss);
  await page.goto(site);
  await page.getByLabel("Token").fill(secret("eyes"));
  await page.keyboard.press("Enter");
  await expect(page.getByRole("row").filter({ hasText: "Seen" })).toBeVisible();
  await expect(page.getByRole("navigation", { name: "Views" }).getByRole("link")).toHaveText(["Sessions"]);
  await expect(page.getByRole("link", { name: "New session" })).toHaveCount(0);
  await page.goto(`${site}/#/start`);
  await expect(page.getByText("may observe only")).toBeVisible();
  await expect(page.getByRole("button", { name: "Start" })).toHaveCount(0);
});

// contract 7.3, whoami: a token that can see nothing is told so, and waits for nothing
test("an observer that sees no session of others is told why the list is empty", async ({ page, site, call, daemon }) => {
  await call("POST", "/v1/sessions", { cwd: daemon.project, prompt: "title Hidden\nhello" }, { Authorization: `Bearer ${secret("boss")}` });
  await page.goto(site);
  await page.getByLabel("Token").fill(secret("blind"));
  await page.keyboard.press("Enter");
  await expect(page.getByText("sees no session of others")).toBeVisible();
  await expect(page.getByText("appear here by themselves")).toHaveCount(0);
});
