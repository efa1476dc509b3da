/** The phases of an object's way as a bar, with their times. */

import type {Phase} from "../api/types.ts";
import {spanOf} from "../lib/format.ts";
import {toneOfState} from "../lib/tone.ts";
import {now} from "../state/clock.ts";
import * as strings from "../strings.ts";
import {Shape} from "./status.tsx";
import {Text} from "./texts.tsx";

export function Phases({phases}: {phases: Phase[]}) {
  if (phases.length === 0) return null;
  return (
    <section aria-labelledby="phases">
      <h2 id="phases">{strings.detail.sections.phases}</h2>
      <ol class="phases">
        {phases.map((phase) => (
          <Step key={phase.name} phase={phase} />
        ))}
      </ol>
    </section>
  );
}

function Step({phase}: {phase: Phase}) {
  const isNow = phase.state === "Current";
  const tone = toneOfState(phase.state);
  // What has ended took so long; what is the last step is since then.
  const span = phase.until || isNow ? spanOf(phase.since, phase.until, now.value) : "";
  return (
    <li class={`phase ${tone} ${phase.state?.toLowerCase() ?? ""}`} aria-current={isNow ? "step" : undefined}>
      <span class="bar" />
      <span class="name">
        <Shape tone={tone} /> {phase.name}
      </span>
      <span class="times">
        {strings.detail.phaseStates[phase.state ?? ""]}
        {phase.since && (
          <>
            {" "}
            · <time dateTime={phase.since}>{clockOf(phase.since)}</time>
          </>
        )}
        {span && <> · {span}</>}
      </span>
      {phase.waitsFor && (
        <span class="waits">
          <Text>{phase.waitsFor}</Text>
        </span>
      )}
    </li>
  );
}

function clockOf(time: string): string {
  const at = new Date(time);
  const isToday = at.toDateString() === new Date(now.value).toDateString();
  return isToday ? at.toLocaleTimeString() : at.toLocaleString(undefined, {dateStyle: "medium", timeStyle: "short"});
}
