/**
 * The output of a job. In: its bytes as they come. Out: lines in blocks, for a screen.
 *
 * At most so many lines are kept, and the oldest go first. A line that is longer than a block of text should be is
 * broken, as an engine lays out a line as a whole; no character is lost.
 */

import {overwrite, stripAnsi} from "./text.ts";

export const blockSize = 500;
export const mostLines = 100_000;
const longest = 4096;

export interface Block {
  /** first is the number of its first line, from 0 at the beginning of what was read. */
  first: number;
  lines: string[];
}

export interface Match {
  line: number;
  at: number;
}

export class Output {
  readonly blocks: Block[] = [];
  /** dropped is how many lines were left out at the beginning. */
  dropped = 0;
  /** count is how many lines came, the last one included that has no end yet. */
  count = 0;
  private partial = "";
  private isOpen = false;
  private decoder = new TextDecoder();

  /** push adds bytes. */
  push(bytes: Uint8Array): void {
    const text = this.partial + this.decoder.decode(bytes, {stream: true});
    if (this.isOpen) this.takeBack();
    const lines = text.split("\n");
    this.partial = lines.pop() ?? "";
    for (const line of lines) this.add(line.replace(/\r$/, ""));
    while (this.partial.length > longest) {
      // an end that never comes must not be read again and again
      this.add(this.partial.slice(0, longest));
      this.partial = this.partial.slice(longest);
    }
    this.isOpen = this.partial !== "";
    if (this.isOpen) this.append(clean(this.partial));
    while (this.count - this.dropped > mostLines) this.dropped += this.blocks.shift()?.lines.length ?? 0;
  }

  /** find returns where a text is, regardless of case, and at most so many places. */
  find(text: string, most: number): Match[] {
    const wanted = text.toLowerCase(),
      found: Match[] = [];
    if (!wanted) return found;
    for (const block of this.blocks) {
      for (let i = 0; i < block.lines.length; i++) {
        const line = (block.lines[i] ?? "").toLowerCase();
        for (let at = line.indexOf(wanted); at >= 0; at = line.indexOf(wanted, at + wanted.length)) {
          if (found.push({line: block.first + i, at}) === most) return found;
        }
      }
    }
    return found;
  }

  private add(line: string): void {
    for (let at = 0; at === 0 || at < line.length; at += longest) this.append(clean(line.slice(at, at + longest)));
  }

  private append(line: string): void {
    let block = this.blocks[this.blocks.length - 1];
    if (!block || block.lines.length === blockSize) this.blocks.push((block = {first: this.count, lines: []}));
    block.lines.push(line);
    this.count++;
  }

  private takeBack(): void {
    const block = this.blocks[this.blocks.length - 1];
    block?.lines.pop();
    if (block?.lines.length === 0) this.blocks.pop();
    this.count--;
    this.isOpen = false;
  }
}

function clean(line: string): string {
  return stripAnsi(overwrite(line));
}

/** offsetIn returns where a match begins in the text of its block. */
export function offsetIn(block: Block, match: Match): number {
  let offset = match.at;
  for (let i = 0; i < match.line - block.first; i++) offset += (block.lines[i]?.length ?? 0) + 1;
  return offset;
}

/** bytesOf returns the bytes of a base64 text. */
export function bytesOf(base64: string): Uint8Array {
  const text = atob(base64),
    bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}
