/** What a command put out, as a terminal would show it: lines of pieces with their looks. The emulator is loaded when it is needed. */

import type { IBufferCell, IBufferLine, Terminal } from "@xterm/xterm";

/** A piece of a line in one look. */
export interface Piece {
  readonly text: string;
  /** Names of classes: `bold`, `dim`, `italic`, `under`, `fg0` to `fg15`, `bg0` to `bg15`. */
  readonly look: string;
  /** A colour beyond the sixteen, for CSS. */
  readonly color: string;
}

/** Columns: long lines are wrapped by the page, not by the emulator. */
const COLUMNS = 500;
/** Lines that are kept. */
const LINES = 2000;

/** An emulator that is written to and read. */
export class Screen {
  private constructor(private readonly terminal: Terminal) {}

  static async open(): Promise<Screen> {
    const xterm = await import("@xterm/xterm");
    // It is never opened in the page: its own drawing needs inline styles, and cannot be read aloud.
    return new Screen(new xterm.Terminal({ cols: COLUMNS, rows: 50, scrollback: LINES, convertEol: true, allowProposedApi: true }));
  }

  /** Writes, and calls back when it can be read. */
  write(text: string, done: () => void): void {
    this.terminal.write(text, done);
  }

  clear(): void {
    this.terminal.reset();
  }

  dispose(): void {
    this.terminal.dispose();
  }

  /** Its last lines, at most `most`, without empty ones at the end. */
  lines(most: number): readonly (readonly Piece[])[] {
    const { active } = this.terminal.buffer;
    const all: Piece[][] = [];
    let last = active.length - 1;
    while (last >= 0 && active.getLine(last)?.translateToString(true) === "") last -= 1;
    for (let at = Math.max(0, last - most + 1); at <= last; at += 1) {
      const line = active.getLine(at);
      if (line === undefined) continue;
      const found = pieces(line, active.getNullCell());
      if (line.isWrapped) all.at(-1)?.push(...found);
      else all.push(found);
    }
    return all;
  }
}

function pieces(line: IBufferLine, cell: IBufferCell): Piece[] {
  const found: { text: string; look: string; color: string }[] = [];
  const end = line.translateToString(true).length;
  for (let at = 0, shown = 0; at < line.length && shown < end; at += 1) {
    const here = line.getCell(at, cell);
    if (here === undefined || here.getWidth() === 0) continue;
    const text = here.getChars() === "" ? " " : here.getChars();
    const look = lookOf(here);
    const color = colorOf(here);
    const last = found.at(-1);
    if (last !== undefined && last.look === look && last.color === color) last.text += text;
    else found.push({ text, look, color });
    shown += text.length;
  }
  return found;
}

function lookOf(cell: IBufferCell): string {
  const looks = [
    cell.isBold() !== 0 ? "bold" : "",
    cell.isDim() !== 0 ? "dim" : "",
    cell.isItalic() !== 0 ? "italic" : "",
    cell.isUnderline() !== 0 ? "under" : "",
    cell.isFgPalette() && cell.getFgColor() < 16 ? `fg${cell.getFgColor()}` : "",
    cell.isBgPalette() && cell.getBgColor() < 16 ? `bg${cell.getBgColor()}` : "",
  ];
  return looks.filter((look) => look !== "").join(" ");
}

/** The colour of the text where it is one of 256, or of 16 million. */
function colorOf(cell: IBufferCell): string {
  const color = cell.getFgColor();
  if (cell.isFgRGB()) return `#${color.toString(16).padStart(6, "0")}`;
  return cell.isFgPalette() && color >= 16 ? palette(color) : "";
}

/** A colour of the cube of 216, or one of the 24 greys behind it. */
export function palette(color: number): string {
  if (color >= 232) {
    const grey = (color - 232) * 10 + 8;
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const step = (part: number): number => (part === 0 ? 0 : part * 40 + 55);
  const index = color - 16;
  return `rgb(${step(Math.floor(index / 36))} ${step(Math.floor(index / 6) % 6)} ${step(index % 6)})`;
}
