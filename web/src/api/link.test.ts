import { expect, it, vi } from "vitest";
import { isPrompt, link, SLOW_MS } from "./link.svelte";

// inspector: What it does (a request that waits says so); R20
it.each([
  ["GET", "/v1/sessions?limit=50", true],
  ["GET", "/v1/whoami", true],
  ["POST", "/v1/sessions/a/prompt", true],
  ["POST", "/v1/sessions/a/answer", true],
  ["POST", "/v1/sessions/a/cancel", true],
  ["POST", "/v1/sessions", false],
  ["POST", "/v1/sessions/a/resume", false],
  ["POST", "/v1/agents/claude/check", false],
  ["DELETE", "/v1/sessions/a", false],
] as const)("the answer to %s %s is due at once: %s", (method, path, expected) => {
  expect(isPrompt(method, path)).toBe(expected);
});

it("tells of requests that wait for over two seconds, until they are answered", () => {
  vi.useFakeTimers();
  try {
    const [first, second, start] = [link.waits("GET", "/v1/whoami"), link.waits("POST", "/v1/sessions/a/prompt"), link.waits("POST", "/v1/sessions")];
    vi.advanceTimersByTime(SLOW_MS - 1);
    second();
    expect(link.slow).toBe(false);
    vi.advanceTimersByTime(1);
    expect(link.slow).toBe(true);
    first();
    expect(link.slow).toBe(false);
    vi.advanceTimersByTime(60_000);
    expect(link.slow).toBe(false);
    start();
  } finally {
    vi.useRealTimers();
  }
});
