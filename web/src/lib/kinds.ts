/** Kinds as the API names them, and as Kubernetes does. */

export type Kind = "clusters" | "jobs" | "services";

export const kinds: readonly Kind[] = ["clusters", "jobs", "services"];

export const resources: Record<Kind, string> = {
  clusters: "computeclusters",
  jobs: "clusterjobs",
  services: "clusterservices",
};

export const singulars: Record<Kind, string> = {
  clusters: "ComputeCluster",
  jobs: "ClusterJob",
  services: "ClusterService",
};

/** isKind reports whether a text names a kind. */
export function isKind(text: string | undefined | null): text is Kind {
  return kinds.includes(text as Kind);
}

/** kindOfManifest returns the kind that a manifest's kind stands for. */
export function kindOfManifest(kind: unknown): Kind | undefined {
  return kinds.find((one) => singulars[one] === kind);
}
