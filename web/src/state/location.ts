/** Where the page is, as the address says, and how to go elsewhere. */

import {computed, signal} from "@preact/signals";
import {isOurs, parseRoute, pathOf, type Route} from "../lib/router.ts";

export const path = signal(location.pathname);
export const query = signal(location.search);
export const route = computed(() => parseRoute(path.value));

function read(): void {
  path.value = location.pathname;
  query.value = location.search;
}

/** go shows another place. With replace, the way back leaves this one out. */
export function go(to: Route | string, replace = false): void {
  const address = typeof to === "string" ? to : pathOf(to);
  history[replace ? "replaceState" : "pushState"](null, "", address);
  read();
}

/** setQuery changes the query of this place. */
export function setQuery(text: string): void {
  history.replaceState(null, "", location.pathname + text);
  read();
}

/** watchLocation follows the browser's way back, and links to places of the page. */
export function watchLocation(): void {
  addEventListener("popstate", read);
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.("a");
    if (
      !link ||
      event.defaultPrevented ||
      event.button !== 0 ||
      event.metaKey ||
      event.ctrlKey ||
      event.shiftKey ||
      event.altKey
    )
      return;
    if (
      link.target ||
      link.hasAttribute("download") ||
      link.origin !== location.origin ||
      !isOurs(link.pathname) ||
      link.hash
    )
      return;
    event.preventDefault();
    go(link.pathname + link.search);
    scrollTo(0, 0);
  });
}
