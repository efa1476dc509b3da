/** The time, as often as ages need it. */

import {signal} from "@preact/signals";

export const now = signal(Date.now());

/** watchClock moves the time on while somebody looks. */
export function watchClock(): void {
  setInterval(() => {
    if (!document.hidden) now.value = Date.now();
  }, 5000);
  document.addEventListener("visibilitychange", () => (now.value = Date.now()));
}
