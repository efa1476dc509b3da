/** Calls of the API, each with the session's cookie. */

import type {Answers, Bodies, Line, Problem} from "./types.ts";
import {isKind, resources} from "../lib/kinds.ts";

/** Refusal is why a call failed, in the API's words. */
export class Refusal extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail || problem.title);
  }

  get code(): number {
    return this.problem.status;
  }
}

export interface Options<R extends keyof Answers> {
  path?: Record<string, string>;
  query?: Record<string, string>;
  body?: R extends keyof Bodies ? Bodies[R] : undefined;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** ask calls a route, and returns its answer or throws a Refusal. */
export async function ask<R extends keyof Answers>(route: R, options: Options<R> = {}): Promise<Answers[R]> {
  const [method = "GET", template = ""] = route.split(" ");
  const query = options.query ? `?${new URLSearchParams(options.query)}` : "";
  const headers: Record<string, string> = {Accept: "application/json", ...options.headers};
  if (method === "POST") headers["Content-Type"] = "application/json";
  const answer = await fetch(pathOf(template, options.path) + query, {
    method,
    headers,
    signal: options.signal,
    body: method === "POST" ? JSON.stringify(options.body ?? {}) : undefined,
  });
  await check(answer);
  return (await answer.json()) as Answers[R];
}

/** pathOf fills the names of a path in. */
export function pathOf(template: string, names: Record<string, string> = {}): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name] ?? ""));
}

/** check throws a Refusal for an answer that is none. */
export async function check(answer: Response): Promise<void> {
  if (answer.ok) return;
  const text = await answer.text();
  let body: Record<string, any> = {};
  try {
    body = JSON.parse(text);
  } catch {
    body.detail = text.slice(0, 500); // a proxy on the way has words of its own
  }
  throw new Refusal({
    type: "",
    title: answer.statusText,
    reason: String(body.reason ?? ""),
    ...body,
    detail: String(body.detail ?? body.message ?? answer.statusText),
    status: answer.status,
  });
}

/** remove deletes an object by Kubernetes' own path, if it is still the one that was meant. */
export async function remove(line: Line): Promise<void> {
  if (!isKind(line.kind)) return;
  const names = {namespace: line.namespace ?? "", resource: resources[line.kind], name: line.name ?? ""};
  const answer = await fetch(pathOf("/apis/heliostat.dev/v1beta1/namespaces/{namespace}/{resource}/{name}", names), {
    method: "DELETE",
    headers: {"Content-Type": "application/json"},
    body: JSON.stringify({
      apiVersion: "v1",
      kind: "DeleteOptions",
      preconditions: {uid: line.uid},
      propagationPolicy: "Background",
    }),
  });
  await check(answer);
}
