/** What can be done with an object in its state, what it needs, and what it removes. */

import type {GetObjectResponse, Line} from "../api/types.ts";
import {isKind, type Kind, resources} from "./kinds.ts";
import type {Need} from "./permissions.ts";

export type Verb = "suspend" | "resume" | "scale" | "stop" | "retry" | "undo" | "delete";

export interface Action {
  verb: Verb;
  need: Need;
}

const ended = new Set(["Succeeded", "Failed", "Stopped"]);
const suspended = new Set(["Suspended", "Suspending"]);

/** isOver reports whether a job has ended. */
export function isOver(line: Line): boolean {
  return line.kind === "jobs" && ended.has(line.phase ?? "");
}

/** isSuspended reports whether an object rests because somebody, or its idle policy, wants it so. */
export function isSuspended(line: Line): boolean {
  return suspended.has(line.phase ?? "");
}

/** actionsOf returns what makes sense for an object in its state. */
export function actionsOf(line: Line): Action[] {
  if (!isKind(line.kind) || line.phase === "Deleting") return [];
  return verbsOf(line.kind, line).map((verb) => ({verb, need: needOf(verb, line.kind as Kind)}));
}

function verbsOf(kind: Kind, line: Line): Verb[] {
  const pause: Verb[] = [isSuspended(line) ? "resume" : "suspend"];
  switch (kind) {
    case "clusters":
      return [...pause, "scale", "delete"];
    case "jobs":
      return isOver(line) ? ["retry", "delete"] : [...pause, "stop", "delete"];
    case "schedules":
      return [...pause, "delete"];
    case "services":
      return [...pause, "undo", "delete"];
  }
}

function needOf(verb: Verb, kind: Kind): Need {
  const verbs: Partial<Record<Verb, string>> = {delete: "delete", retry: "create"};
  return {verb: verbs[verb] ?? "patch", resource: resources[kind]};
}

/** remedyOf returns the action that helps an object, where its remedy is one. */
export function remedyOf(line: Line): Verb | undefined {
  if (line.phase === "Suspended") return "resume";
  if (line.kind === "jobs" && line.phase === "Failed") return "retry";
  if (line.kind === "services" && (line.phase === "Degraded" || line.code === "UpgradeRolledBack")) return "undo";
  return undefined;
}

/** Answer is an object with the jobs of a schedule, the latest first. */
export interface Answer extends GetObjectResponse {
  jobs?: Line[];
}

/** Removed is what an action takes away. */
export interface Removed {
  pods: string[];
  /** clusters are those that go with the object. */
  clusters: string[];
  /** jobs are those of a schedule. */
  jobs: string[];
  /** isKept is that the object itself stays. */
  isKept: boolean;
}

/** removedBy returns what an action takes away, as far as the caller can see it. */
export function removedBy(verb: Verb, detail: Answer): Removed | undefined {
  switch (verb) {
    case "suspend":
    case "stop":
    case "delete": {
      const pods = hasOwnPods(detail) ? (detail.pods ?? []).map((pod) => pod.name ?? "") : [];
      return {
        pods,
        clusters: verb === "suspend" ? [] : ownClusters(detail),
        jobs: verb === "delete" ? (detail.jobs ?? []).map((job) => job.name ?? "") : [],
        isKept: verb !== "delete",
      };
    }
    default:
      return undefined;
  }
}

// The pods of a job or a service on a shared cluster stay with that.
function hasOwnPods(detail: GetObjectResponse): boolean {
  return detail.line?.kind === "clusters" || ownClusters(detail).length > 0;
}

/** ownClusters returns the clusters that belong to a job or a service alone. */
export function ownClusters(detail: GetObjectResponse): string[] {
  const spec = detail.object?.spec,
    status = detail.object?.status;
  if (!spec || spec.clusterRef) return [];
  const names: unknown[] = [
    status?.clusterName,
    status?.active?.clusterName,
    status?.candidate?.clusterName,
    ...(status?.retiring ?? []),
  ];
  return [...new Set(names.filter((name): name is string => typeof name === "string" && name !== ""))];
}

/** Group is a worker group that can be scaled. */
export interface Group {
  name: string;
  replicas: number;
  minimum: number;
  maximum: number | undefined;
}

/** groupsOf returns the worker groups of a cluster's spec. */
export function groupsOf(detail: GetObjectResponse): Group[] {
  const groups: Record<string, any>[] = detail.object?.spec?.workerGroups ?? [];
  return groups.map((one) => ({
    name: String(one.name),
    replicas: one.replicas ?? 0,
    minimum: one.minReplicas ?? 0,
    maximum: one.maxReplicas,
  }));
}
