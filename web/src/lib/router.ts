/** Addresses of the page, in and out. Pure: the history is in state/location.ts. */

import {isKind, type Kind} from "./kinds.ts";

export type Route =
  | {page: "list"}
  | {page: "detail"; kind: Kind; namespace: string; name: string}
  | {page: "new"}
  | {page: "me"}
  | {page: "signin"}
  | {page: "none"};

const base = "/ui/";
const simple = ["new", "me", "signin"] as const;

/** parseRoute returns what is at a path. */
export function parseRoute(path: string): Route {
  if (path === base || path === base.slice(0, -1)) return {page: "list"};
  if (!path.startsWith(base)) return {page: "none"};
  const parts = path.slice(base.length).replace(/\/$/, "").split("/");
  const [first, namespace, name] = parts.map(decode);
  const page = simple.find((one) => one === first);
  if (page && parts.length === 1) return {page};
  if (isKind(first) && namespace && name && parts.length === 3) return {page: "detail", kind: first, namespace, name};
  return {page: "none"};
}

/** pathOf returns the path of a route. */
export function pathOf(route: Route): string {
  switch (route.page) {
    case "detail":
      return base + [route.kind, route.namespace, route.name].map(encodeURIComponent).join("/");
    case "list":
    case "none":
      return base;
    default:
      return base + route.page;
  }
}

/** isOurs reports whether a path is one of the page, where a sign-in can return to. */
export function isOurs(path: string): boolean {
  return path.startsWith(base) && !path.startsWith("//") && !path.includes("\\");
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return ""; // a malformed escape names nothing
  }
}
