import { describe, expect, it } from "vitest";
import { openEventPages } from "./event-pages";

/** A session that has so many events at each look; the last look finds its end. */
function session(looks: readonly number[]) {
  const asked: string[] = [];
  let look = 0;
  const ask = (path: string): Promise<Response> => {
    asked.push(path);
    const query = /\?after=(\d+)&limit=(\d+)$/.exec(path);
    const count = looks[Math.max(0, look - (query === null ? 0 : 1))] ?? 0;
    if (query === null) {
      look += 1;
      return Promise.resolve(Response.json({ eventCount: count, ended: look >= looks.length }));
    }
    const after = Number(query[1]);
    const length = Math.min(Number(query[2]), count - after);
    return Promise.resolve(Response.json({ events: Array.from({ length }, (_, index) => ({ seq: after + index + 1, kind: "update" })) }));
  };
  return { ask, asked };
}

const numbers = (text: string): number[] => [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => (JSON.parse(json ?? "") as { seq: number }).seq);

// contract 1.6: without a stream each event is read once, in order, to the end of the run
describe("openEventPages", () => {
  it.each([
    [[0, 0], 0, 0],
    [[3, 3], 3, 0],
    [[3, 3], 1, 2],
    [[2, 2, 5, 5, 2500, 2500, 2500, 2500], 0, 2500],
  ] as const)("looks that find %j, behind %i: %i events", async (looks, after, count) => {
    const { ask } = session(looks);
    const pauses: number[] = [];
    const response = await openEventPages("/v1/sessions/a", after, ask, (ms) => Promise.resolve(void pauses.push(ms)));
    expect(numbers(await response.text())).toEqual(Array.from({ length: count }, (_, index) => after + index + 1));
    expect(pauses.every((ms) => ms === 1000)).toBe(true);
  });

  it("gives a refusal as it is, and breaks off when one comes later", async () => {
    const refusal = Response.json({ type: "urn:x", detail: "no" }, { status: 404 });
    expect(await openEventPages("/v1/sessions/a", 0, () => Promise.resolve(refusal))).toBe(refusal);
    let looks = 0;
    const later = (): Promise<Response> => Promise.resolve(looks++ === 0 ? Response.json({ eventCount: 0, ended: false }) : Response.json({}, { status: 503 }));
    const response = await openEventPages("/v1/sessions/a", 0, later, () => Promise.resolve());
    await expect(response.text()).rejects.toThrow("503");
  });
});
