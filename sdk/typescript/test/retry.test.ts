import { expect, test } from "vitest";
import { AbortedError, NetworkError, ProblemError } from "../src/errors.js";
import { backoff, delayAfter, pause, persistently } from "../src/retry.js";

// inspector: SDK: reconnects with backoff
test.each([
  [1, 0, 100],
  [2, 0, 200],
  [6, 0, 3200],
  [7, 0, 5000],
  [1000, 0, 5000],
  [1, 1, 50],
  [1000, 1, 2500],
])("try %i, chance %i: %i ms", (attempt, chance, ms) => {
  expect(backoff(attempt, chance)).toBe(ms);
});

const busy = new ProblemError(
  { type: "urn:sandbox-agent:error:busy", title: "", status: 503, detail: "" },
  1000,
);

// contract 1.3: a daemon that says when to come back is heard
test("Retry-After goes over a shorter wait, not over a longer one", () => {
  expect(delayAfter(busy, 1, 0)).toBe(1000);
  expect(delayAfter(busy, 7, 0)).toBe(5000);
});

// inspector: SDK: a request that may be repeated is repeated for as long as it may help
test("what is transient is tried again, anything else is not", async () => {
  let tries = 0;
  const failing = (error: Error) => () => {
    tries += 1;
    return tries < 3 ? Promise.reject(error) : Promise.resolve("done");
  };
  await expect(persistently(failing(new NetworkError("cut")), 10_000)).resolves.toBe("done");
  tries = 0;
  await expect(persistently(failing(new TypeError("a mistake")), 10_000)).rejects.toThrow(TypeError);
  await expect(persistently(failing(busy), 0)).rejects.toBe(busy);
  expect(tries).toBe(2);
});

// inspector: SDK: AbortSignal everywhere
test("a pause ends with its signal", async () => {
  const stop = new AbortController();
  const paused = pause(3_600_000, stop.signal);
  stop.abort("enough");
  await expect(paused).rejects.toThrow(AbortedError);
  await expect(pause(3_600_000, stop.signal)).rejects.toMatchObject({ cause: "enough", name: "AbortError" });
});
