/**
 * The lines of a watch. In: its events. Out: lines by key, and which of them have changed.
 *
 * A state that is sent again as a whole replaces the former one only when it is whole: nothing vanishes in between.
 */

import type {Line} from "../api/types.ts";

/** ServerEvent is an event of a stream. One without a type only moves the ID. */
export interface ServerEvent {
  id: string;
  type: string;
  data: string;
}

export type Health = "loading" | "whole" | "stale";

/** keyOf names an object, whatever its UID. */
export function keyOf(line: Line): string {
  return `${line.kind}/${line.namespace}/${line.name}`;
}

export class Lines {
  readonly all = new Map<string, Line>();
  /** changed has the keys that changed since they were taken last. */
  changed = new Set<string>();
  health: Health = "loading";
  /** cursor is where the watch goes on. */
  cursor = "";
  private seen: Set<string> | undefined;

  take(event: ServerEvent): void {
    if (event.id) this.cursor = event.id;
    switch (event.type) {
      case "sync":
        this.seen = new Set();
        if (this.health === "whole") this.health = "stale";
        break;
      case "put":
        this.put(lineOf(event));
        break;
      case "del":
        this.remove(lineOf(event));
        break;
      case "ready":
        this.settle();
        break;
      case "stale":
        this.health = "stale";
        break;
    }
  }

  /** takeChanged returns the keys that have changed, and forgets them. */
  takeChanged(): Set<string> {
    const changed = this.changed;
    this.changed = new Set();
    return changed;
  }

  private put(line: Line): void {
    const key = keyOf(line);
    this.all.set(key, line);
    this.changed.add(key);
    this.seen?.add(key);
    if (!this.seen) this.health = "whole"; // what changes is heard of again
  }

  // A name may have been taken again: only the object that is meant goes.
  private remove(line: Line): void {
    const key = keyOf(line);
    if (this.all.get(key)?.uid !== line.uid) return;
    this.all.delete(key);
    this.changed.add(key);
  }

  private settle(): void {
    if (this.seen) {
      for (const key of this.all.keys()) {
        if (this.seen.has(key)) continue;
        this.all.delete(key);
        this.changed.add(key);
      }
    }
    this.seen = undefined;
    this.health = "whole";
  }
}

function lineOf(event: ServerEvent): Line {
  return (JSON.parse(event.data) as {line: Line}).line;
}
