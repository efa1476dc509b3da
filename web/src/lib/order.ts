/** The order of rows. While somebody points at them they stay where they are. */

import type {Line} from "../api/types.ts";
import {compare, type Filter, matches} from "./filter.ts";

export interface Order {
  keys: string[];
  /** total is how many lines the filter shows. */
  total: number;
  /** all is how many lines there are. */
  all: number;
  /** waiting is how many rows will come, go or move once nobody points at them. */
  waiting: number;
}

/**
 * arrange returns the order of rows: of all that the filter shows, or, where rows are held, those and no others.
 * A row that is held stays, also where its object is gone.
 */
export function arrange(lines: ReadonlyMap<string, Line>, filter: Filter, limit: number, held?: string[]): Order {
  const shown: [string, Line][] = [];
  for (const entry of lines) {
    if (matches(filter, entry[1])) shown.push(entry);
  }
  shown.sort((a, b) => compare(filter, a[1], b[1]));
  const keys = shown.slice(0, limit).map((entry) => entry[0]);
  if (!held) return {keys, total: shown.length, all: lines.size, waiting: 0};
  const stays = new Set(held);
  const come = keys.reduce((sum, key) => sum + (stays.has(key) ? 0 : 1), 0);
  const goes = held.filter((key) => !lines.has(key)).length;
  return {keys: held, total: shown.length, all: lines.size, waiting: come + goes};
}

/** isSame reports whether two lists have the same keys in the same order. */
export function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((key, i) => key === b[i]);
}
