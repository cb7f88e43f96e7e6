/** Content blocks of ACP, read from what an agent or a client sent. */

import { defined, get, list, number, text } from "./raw";

/** One content block. `data` is base64, as it came. */
export type Content =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly mimeType: string; readonly data: string; readonly uri?: string }
  | { readonly type: "audio"; readonly mimeType: string; readonly data: string; readonly uri?: string }
  | { readonly type: "link"; readonly uri: string; readonly name: string; readonly mimeType?: string; readonly size?: number }
  | { readonly type: "resource"; readonly uri: string; readonly mimeType?: string; readonly text?: string; readonly blob?: string }
  | { readonly type: "other"; readonly name: string; readonly raw: unknown };

/** What a tool call produced. */
export type ToolContent =
  | { readonly type: "content"; readonly content: Content }
  | { readonly type: "diff"; readonly path: string; readonly oldText: string; readonly newText: string; readonly isNew: boolean }
  | { readonly type: "terminal"; readonly terminalId: string }
  | { readonly type: "other"; readonly name: string; readonly raw: unknown };

/** A place in a file. */
export interface Location {
  readonly path: string;
  readonly line?: number;
}

/** Reads a content block; what is unknown is kept as it is. */
export function content(block: unknown): Content {
  const type = text(get(block, "type")) ?? "block";
  switch (type) {
    case "text":
      return { type, text: text(get(block, "text")) ?? "" };
    case "image":
    case "audio":
      return defined<Extract<Content, { type: typeof type }>>({
        type,
        mimeType: text(get(block, "mimeType")) ?? type,
        data: text(get(block, "data")) ?? "",
        uri: text(get(block, "uri")),
      });
    case "resource_link":
      return defined<Extract<Content, { type: "link" }>>({
        type: "link",
        uri: text(get(block, "uri")) ?? "",
        name: text(get(block, "title")) ?? text(get(block, "name")) ?? "",
        mimeType: text(get(block, "mimeType")),
        size: number(get(block, "size")),
      });
    case "resource":
      return resource(get(block, "resource"));
    default:
      return { type: "other", name: type, raw: block };
  }
}

function resource(value: unknown): Content {
  return defined<Extract<Content, { type: "resource" }>>({
    type: "resource",
    uri: text(get(value, "uri")) ?? "",
    mimeType: text(get(value, "mimeType")),
    text: text(get(value, "text")),
    blob: text(get(value, "blob")),
  });
}

/** Reads the content of a tool call. */
export function toolContent(value: unknown): readonly ToolContent[] {
  return list(value).map(oneToolContent);
}

function oneToolContent(value: unknown): ToolContent {
  const type = text(get(value, "type")) ?? "content";
  switch (type) {
    case "content":
      return { type, content: content(get(value, "content")) };
    case "diff": {
      const oldText = text(get(value, "oldText"));
      const newText = text(get(value, "newText")) ?? "";
      return { type, path: text(get(value, "path")) ?? "", oldText: oldText ?? "", newText, isNew: oldText === undefined };
    }
    case "terminal":
      return { type, terminalId: text(get(value, "terminalId")) ?? "" };
    default:
      return { type: "other", name: type, raw: value };
  }
}

/** Reads the places that a tool call names. */
export function locations(value: unknown): readonly Location[] {
  return list(value).flatMap((place) => {
    const path = text(get(place, "path"));
    return path === undefined ? [] : [defined<Location>({ path, line: number(get(place, "line")) })];
  });
}
