/** What GET /session answers, and the links that follow from it. */

import type {Line} from "../api/types.ts";

export interface Session {
  isSignedIn: boolean;
  user?: string;
  until?: string;
  /** ways are those in which somebody can sign in here. */
  ways?: Way[];
  /** dashboards is the address of the dashboards' origin; without it there is none. */
  dashboards?: string;
  links?: Template[];
}

export type Way = "oidc" | "token" | "frontProxy";

/** Template is a link of the administrator's, with ${…} in its URL. */
export interface Template {
  title: string;
  url: string;
  /** kinds are those that have the link; none is all of them. */
  kinds?: string[];
}

export interface Link {
  title: string;
  url: string;
}

/** dashboardOf returns the address of a cluster's dashboard, or of a service. */
export function dashboardOf(session: Session | undefined, line: Line): string {
  const {namespace = "", name = ""} = line;
  if (!session?.dashboards || !namespace || !name) return "";
  const base = session.dashboards.replace(/\/$/, "");
  if (line.kind === "services") return `${base}/services/${namespace}/${name}/`;
  if (line.kind !== "clusters") return "";
  return namespace === "services" ? `${base}/-/clusters/${namespace}/${name}/` : `${base}/${namespace}/${name}/`;
}

/** linksOf returns the administrator's links for an object. Only links of the web are ones. */
export function linksOf(session: Session | undefined, line: Line): Link[] {
  const found: Link[] = [];
  for (const one of session?.links ?? []) {
    if (one.kinds?.length && !one.kinds.includes(line.kind ?? "")) continue;
    const url = one.url.replace(/\$\{(\w+)\}/g, (_, key: string) => encodeURIComponent(valueOf(line, key)));
    if (/^https?:\/\//.test(url)) found.push({title: one.title, url});
  }
  return found;
}

function valueOf(line: Line, key: string): string {
  switch (key) {
    case "kind":
    case "namespace":
    case "name":
    case "uid":
    case "cluster":
      return line[key] ?? "";
    case "since":
      return line.created ? String(Date.parse(line.created)) : "";
    default:
      return "";
  }
}
