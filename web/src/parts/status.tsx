/** A phase as shape, word and colour. */

import {type Tone, toneOf} from "../lib/tone.ts";

// Each tone has a shape of its own, so that colour says nothing alone.
const shapes: Record<Tone, string> = {
  good: "M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1zm3.1 4.2L7 9.6 4.9 7.5l-1 1L7 11.6l5.1-5.4z",
  active: "M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1zM6.2 4.6v6.8L11.6 8z",
  waiting:
    "M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1zm0 1.6a5.4 5.4 0 1 0 0 10.8A5.4 5.4 0 0 0 8 2.6zm.8 1.7v3.4l2.4 2.4-1.1 1.1-2.8-2.9V4.3z",
  paused: "M3.5 2h3v12h-3zm6 0h3v12h-3z",
  stopped: "M8 1a7 7 0 1 1 0 14A7 7 0 0 1 8 1zm0 1.6a5.4 5.4 0 1 0 0 10.8A5.4 5.4 0 0 0 8 2.6z",
  warning: "M8 1.2 15.6 14.6H.4zM7.2 6v4.4h1.6V6zm0 5.5V13h1.6v-1.5z",
  bad: "M5 1h6l4 4v6l-4 4H5l-4-4V5zm.6 3.5L4.5 5.6 6.9 8l-2.4 2.4 1.1 1.1L8 9.1l2.4 2.4 1.1-1.1L9.1 8l2.4-2.4-1.1-1.1L8 6.9z",
};

export function Shape({tone}: {tone: Tone}) {
  return (
    <svg class="shape" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path fill-rule="evenodd" d={shapes[tone]} />
    </svg>
  );
}

export function Status({phase}: {phase: string | undefined}) {
  return <Toned tone={toneOf(phase)} word={phase || "Pending"} />;
}

export function Toned({tone, word}: {tone: Tone; word: string}) {
  return (
    <span class={`status ${tone}`}>
      <Shape tone={tone} /> {word}
    </span>
  );
}
