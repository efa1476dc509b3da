/** The lines of the tab's watch, as signals: one for each row, and one for what is shown in which order. */

import {signal, type Signal} from "@preact/signals";
import type {Line} from "../api/types.ts";
import {type Health, Lines, type ServerEvent} from "../lib/lines.ts";
import {pathOf} from "../api/client.ts";
import type {Source} from "./stream.ts";

/** Shown is a line as it is painted. A row can outlive its object while somebody points at it. */
export interface Shown {
  line: Line;
  isGone: boolean;
}

// A screen that shows 30 frames a second has the longest.
const frame = 34;

export class Watch implements Source {
  readonly lines = new Lines();
  /** version counts the changes that are painted. */
  readonly version = signal(0);
  readonly health = signal<Health>("loading");
  private readonly rows = new Map<string, Signal<Shown>>();
  private isDue = false;
  private painted = 0;

  constructor(private readonly filter: Record<string, string> = {}) {}

  url(): string {
    const query = new URLSearchParams(this.filter);
    if (this.lines.cursor) query.set("since", this.lines.cursor);
    const text = query.toString();
    return pathOf("/v1/objects/watch") + (text && `?${text}`);
  }

  isOver(): boolean {
    return false;
  }

  isStale(): boolean {
    return this.lines.health === "stale";
  }

  take(event: ServerEvent): void {
    this.lines.take(event);
    if (this.isDue) return;
    this.isDue = true;
    // What comes after a pause is rendered at once, not in the time of a frame; what comes in a burst, once a frame.
    if (performance.now() - this.painted < frame) requestAnimationFrame(() => this.paint());
    else queueMicrotask(() => this.paint());
  }

  /** row returns the line of a key, as it is painted. */
  row(key: string): Signal<Shown> | undefined {
    let row = this.rows.get(key);
    const line = this.lines.all.get(key);
    if (!row && line) this.rows.set(key, (row = signal({line, isGone: false})));
    return row;
  }

  /** forget drops rows that are gone and not shown any more. */
  forget(shown: readonly string[]): void {
    const kept = new Set(shown);
    for (const key of this.rows.keys()) {
      if (!this.lines.all.has(key) && !kept.has(key)) this.rows.delete(key);
    }
  }

  // All that came since the last time is painted at once.
  private paint(): void {
    this.isDue = false;
    this.painted = performance.now();
    const changed = this.lines.takeChanged();
    for (const key of changed) {
      const row = this.rows.get(key),
        line = this.lines.all.get(key);
      if (row) row.value = line ? {line, isGone: false} : {...row.value, isGone: true};
    }
    this.health.value = this.lines.health;
    if (changed.size > 0) this.version.value++;
  }
}

/** everything is the watch of the list. It keeps what it has while another place is shown, and goes on from there. */
export const everything = new Watch();
