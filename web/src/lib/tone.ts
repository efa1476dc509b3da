/** How a phase looks. The word says it too: neither shape nor colour is alone. */

export type Tone = "good" | "active" | "waiting" | "paused" | "stopped" | "warning" | "bad";

const tones: Record<string, Tone> = {
  Ready: "good",
  Succeeded: "good",
  Running: "active",
  Suspended: "paused",
  Suspending: "paused",
  Stopped: "stopped",
  Failed: "bad",
  Degraded: "warning",
  Deleting: "stopped",
};

/** toneOf returns how a phase looks. What is on its way waits. */
export function toneOf(phase: string | undefined): Tone {
  return tones[phase ?? ""] ?? "waiting";
}

/** toneOfState returns how a step of an object's way looks. */
export function toneOfState(state: string | undefined): Tone {
  switch (state) {
    case "Done":
      return "good";
    case "Current":
      return "active";
    case "Failed":
      return "bad";
    default:
      return "stopped";
  }
}
