/** Server-sent events, from the text of a stream as it comes. */

import type {ServerEvent} from "./lines.ts";

export class EventParser {
  private rest = "";
  private id = "";
  private type = "";
  private data: string[] = [];
  private hasField = false;

  /** push returns the events that a part of the stream completes. */
  push(text: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (this.hasField) events.push({id: this.id, type: this.type, data: this.data.join("\n")});
        this.type = "";
        this.data = [];
        this.hasField = false;
        continue;
      }
      this.field(line);
    }
    return events;
  }

  private field(line: string): void {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    switch (name) {
      case "id":
        this.id = value;
        break;
      case "event":
        this.type = value;
        break;
      case "data":
        this.data.push(value);
        break;
      default:
        return; // a comment, or what a later server says
    }
    this.hasField = true;
  }
}
