import { expect, test } from "vitest";
import { SseParser } from "../src/sse.js";

const messages = (...pieces: string[]) => {
  const parser = new SseParser();
  return pieces.flatMap((piece) => parser.push(piece)).map(({ event, data }) => [event, data]);
};

// contract 1.6: event streams as the standard has them
test.each<[string, string[], string[][]]>([
  ["an event", ["id: 4\nevent: update\ndata: {}\n\n"], [["update", "{}"]]],
  ["comments and unknown fields are passed over", [": here\n\nretry: 5\nfoo\ndata: 1\n\n"], [["", "1"]]],
  ["several lines of data", ["data: 1\ndata:2\ndata\n\n"], [["", "1\n2\n"]]],
  ["no data is no message", ["event: update\n\ndata: 1\n\n"], [["", "1"]]],
  ["only one space is taken away", ["data:  x \n\n"], [["", " x "]]],
  ["cut anywhere", "event: a\ndata: 12\n\nevent: b\ndata: 3\n\n".split(""), [["a", "12"], ["b", "3"]]],
  ["other line ends", ["data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n"], [["", "1"], ["", "2"], ["", "3"]]],
  ["a line end cut in two", ["data: 1\r", "\n\r", "\ndata: 2\r", "", "\n\n"], [["", "1"], ["", "2"]]],
  ["what is unfinished is nothing", ["data: 1\n\ndata: 2\n"], [["", "1"]]],
])("%s", (_name, pieces, expected) => {
  expect(messages(...pieces)).toEqual(expected);
});
