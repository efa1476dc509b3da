/** What GET /session answers, and the links that follow from it. */

import type {Line} from "../api/types.ts";
import {isKind, singulars} from "./kinds.ts";

export interface Session {
  signedIn: boolean;
  user?: string;
  /** expires is when the user has to sign in again. */
  expires?: string;
  /** why says why a session that there was does not count. */
  why?: string;
  ways: {kind: string; name: string}[];
  links: Template[];
  /** to is where to go after signing in. */
  to: string;
}

/** Template is a link of the administrator's, with ${…} in its URL. */
export interface Template {
  name: string;
  /** kind is that of the objects which have the link, as Kubernetes names it; none is all of them. */
  kind?: string;
  urlTemplate: string;
}

export interface Link {
  title: string;
  url: string;
}

/** linksOf returns the administrator's links for an object at a time. Only links of the web are ones. */
export function linksOf(session: Session | undefined, line: Line, now: number): Link[] {
  const kind = isKind(line.kind) ? singulars[line.kind] : "",
    found: Link[] = [];
  for (const one of session?.links ?? []) {
    if (one.kind && one.kind !== kind) continue;
    const url = one.urlTemplate.replace(/\$\{(\w+)\}/g, (_, key: string) =>
      encodeURIComponent(valueOf(line, key, now)),
    );
    if (/^https?:\/\//.test(url)) found.push({title: one.name, url});
  }
  return found;
}

// Times are milliseconds since 1970, as Grafana has them.
function valueOf(line: Line, key: string, now: number): string {
  switch (key) {
    case "namespace":
    case "name":
    case "uid":
      return line[key] ?? "";
    case "start":
      return line.created ? String(Date.parse(line.created)) : "";
    case "end":
      return String(now);
    default:
      return "";
  }
}
