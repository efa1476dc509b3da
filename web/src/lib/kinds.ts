/** Kinds as the API names them, and as Kubernetes does. */

export type Kind = "clusters" | "jobs" | "schedules" | "services";

export const kinds: readonly Kind[] = ["clusters", "jobs", "schedules", "services"];

export const resources: Record<Kind, string> = {
  clusters: "computeclusters",
  jobs: "clusterjobs",
  schedules: "clusterjobschedules",
  services: "clusterservices",
};

export const singulars: Record<Kind, string> = {
  clusters: "ComputeCluster",
  jobs: "ClusterJob",
  schedules: "ClusterJobSchedule",
  services: "ClusterService",
};

/** scheduleLabel is, on a job of a schedule, the schedule's name. */
export const scheduleLabel = "heliostat.dev/schedule";

/** isKind reports whether a text names a kind. */
export function isKind(text: string | undefined | null): text is Kind {
  return kinds.includes(text as Kind);
}

/** kindOfManifest returns the kind that a manifest's kind stands for. */
export function kindOfManifest(kind: unknown): Kind | undefined {
  return kinds.find((one) => singulars[one] === kind);
}
