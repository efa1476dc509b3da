/** What a screen reader is told: at most one message in five seconds, the last one. */

import {signal} from "@preact/signals";

const every = 5000;

export const announcement = signal("");

let last = -every;
let next: ReturnType<typeof setTimeout> | undefined;

/** announce says something politely. */
export function announce(text: string): void {
  clearTimeout(next);
  const wait = Math.max(0, last + every - performance.now());
  next = setTimeout(() => {
    last = performance.now();
    announcement.value = text;
  }, wait);
}
