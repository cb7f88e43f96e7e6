import { expect, it } from "vitest";
import { keyOf, type Place } from "./keys";

const nowhere: Place = { field: "none", isEmpty: true };
const empty: Place = { field: "prompt", isEmpty: true };
const written: Place = { field: "prompt", isEmpty: false };
const search = (isEmpty: boolean): Place => ({ field: "search", isEmpty });
const none = { ctrlKey: false, altKey: false, metaKey: false };

// inspector: Session view (by keyboard, never steals typing); Esc leaves what is typed in, digits answer while the prompt is empty
it.each([
  ["q", {}, nowhere, "question"],
  ["x", {}, nowhere, undefined],
  ["q", {}, written, undefined],
  ["q", { ctrlKey: true }, nowhere, undefined],
  ["q", {}, empty, undefined],
  ["1", {}, nowhere, { option: 1 }],
  ["9", {}, empty, { option: 9 }],
  ["0", {}, empty, undefined],
  ["1", {}, written, undefined],
  ["1", {}, { field: "other", isEmpty: true } as Place, undefined],
  ["1", {}, search(true), undefined],
  ["1", { repeat: true }, empty, undefined],
  ["1", { ctrlKey: true }, nowhere, undefined],
  ["1", { isComposing: true }, empty, undefined],
  ["Escape", {}, written, "leave"],
  ["Escape", {}, nowhere, "leave"],
  ["Escape", {}, search(true), "leave"],
  ["Escape", {}, search(false), undefined],
  ["Escape", { isComposing: true }, written, undefined],
  [".", { ctrlKey: true }, written, "cancel"],
  [".", { metaKey: true }, nowhere, "cancel"],
  [".", {}, written, undefined],
] as const)("%s %j in %j: %j", (key, pressed, place, expected) => {
  expect(keyOf({ key, ...none, ...pressed }, place)).toEqual(expected);
});
