/**
 * The lines of an output in the document. In: an output, and when it has changed. Out: one element for 500 lines,
 * which the browser lays out only where it is seen. A line that comes changes one text.
 */

import {type Block, type Match, offsetIn, type Output} from "../lib/output.ts";

const highlight = "found";

export class OutputScreen {
  private readonly elements: {block: Block; text: Text; element: HTMLElement; length: number}[] = [];
  private isDue = false;
  private isFollowing = true;
  private seen = 0;
  private matches: Match[] = [];
  private wanted = "";
  private readonly onScroll = () => this.scrolled();

  constructor(
    private readonly box: HTMLElement,
    private readonly output: Output,
    private readonly tellBehind: (count: number) => void,
  ) {
    box.addEventListener("scroll", this.onScroll, {passive: true});
  }

  close(): void {
    this.box.removeEventListener("scroll", this.onScroll);
    this.box.replaceChildren();
    mark(undefined);
  }

  /** paint shows what has come, with the next frame. */
  paint(): void {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.fill();
    });
  }

  /** fill brings the document up to date. */
  fill(): void {
    const {blocks} = this.output;
    while (this.elements.length > 0 && this.elements[0]?.block !== blocks[0]) this.elements.shift()?.element.remove();
    const last = this.elements[this.elements.length - 1];
    if (last) write(last);
    const added = document.createDocumentFragment();
    for (const block of blocks.slice(this.elements.length)) {
      const element = document.createElement("div"),
        text = document.createTextNode("");
      element.className = "block";
      element.append(text);
      const one = {block, text, element, length: 0};
      write(one);
      this.elements.push(one);
      added.append(element);
    }
    this.box.append(added);
    if (this.isFollowing) {
      this.box.scrollTop = this.box.scrollHeight;
      this.seen = this.output.count;
    }
    this.tellBehind(this.isFollowing ? 0 : this.output.count - this.seen);
  }

  /** toEnd shows the last line, and follows. */
  toEnd(): void {
    this.isFollowing = true;
    this.fill();
  }

  /** find looks for a text, and returns how many places have it. */
  find(text: string, most: number): number {
    this.wanted = text;
    this.matches = this.output.find(text, most);
    if (this.matches.length === 0) mark(undefined);
    return this.matches.length;
  }

  /** show brings a place that was found into sight. */
  show(number: number): void {
    const match = this.matches[number];
    const one =
      match &&
      this.elements.find(({block}) => match.line >= block.first && match.line < block.first + block.lines.length);
    if (!match || !one) return;
    this.isFollowing = false;
    this.seen = this.output.count;
    const range = document.createRange(),
      from = offsetIn(one.block, match);
    range.setStart(one.text, Math.min(from, one.text.length));
    range.setEnd(one.text, Math.min(from + this.wanted.length, one.text.length));
    mark(range);
    one.element.scrollIntoView({block: "nearest"}); // it is laid out from the next frame on
    requestAnimationFrame(() => {
      const place = range.getBoundingClientRect(),
        frame = this.box.getBoundingClientRect();
      this.box.scrollTop += place.top - frame.top - frame.height / 3;
    });
  }

  private scrolled(): void {
    const isAtEnd = this.box.scrollHeight - this.box.scrollTop - this.box.clientHeight < 24;
    if (isAtEnd === this.isFollowing) return;
    this.isFollowing = isAtEnd;
    this.seen = this.output.count;
    if (isAtEnd) this.tellBehind(0);
  }
}

function write(one: {block: Block; text: Text; length: number}): void {
  const text = one.block.lines.join("\n");
  if (text !== one.text.data) one.text.data = text;
}

// A highlight changes no element. Where the browser has none, the place is selected.
function mark(range: Range | undefined): void {
  if (typeof Highlight === "undefined") {
    const selection = getSelection();
    selection?.removeAllRanges();
    if (range) selection?.addRange(range);
    return;
  }
  if (range) CSS.highlights.set(highlight, new Highlight(range));
  else CSS.highlights.delete(highlight);
}
