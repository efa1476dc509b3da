/** What the caller can do where, as GET /v1/namespaces says. */

import type {Namespace} from "../api/types.ts";

export interface Need {
  verb: string;
  resource: string;
}

/** can reports whether the caller has a permission in a namespace. */
export function can(namespaces: readonly Namespace[], namespace: string, need: Need): boolean {
  const here = namespaces.find((one) => one.name === namespace);
  const found = here?.permissions?.find((one) => one.resource === need.resource);
  return found?.verbs?.includes(need.verb) ?? false;
}

/** whereCan returns the namespaces in which the caller has a permission. */
export function whereCan(namespaces: readonly Namespace[], need: Need): string[] {
  return namespaces.map((one) => one.name ?? "").filter((name) => can(namespaces, name, need));
}
