/** Texts from others, times, and commands to copy. */

import {useSignal} from "@preact/signals";
import {absoluteOf, ageOf} from "../lib/format.ts";
import {cut, stripAnsi} from "../lib/text.ts";
import {now} from "../state/clock.ts";
import * as strings from "../strings.ts";

const most = 4000;

/** Text is what others wrote: its direction is its own, and does not reach what stands beside it. */
export function Text({children}: {children: string | undefined}) {
  return <bdi>{cut(stripAnsi(children ?? ""), most)}</bdi>;
}

/** Age is how long ago a time is, with the time itself. */
export function Age({time}: {time: string | undefined}) {
  if (!time) return null;
  return (
    <time dateTime={time} title={absoluteOf(time)}>
      {ageOf(time, now.value)}
    </time>
  );
}

/** Moment is a time in the reader's zone. */
export function Moment({time}: {time: string}) {
  return <time dateTime={time}>{absoluteOf(time)}</time>;
}

/** Command is something to type, with a button that copies it. */
export function Command({text, label}: {text: string; label: string}) {
  const copied = useSignal(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    copied.value = true;
  };
  return (
    <div class="command">
      <pre tabIndex={0} role="group" aria-label={label}>
        <code>{text}</code>
      </pre>
      <button type="button" class="quiet" onClick={copy} aria-label={`${strings.create.copy}: ${label}`}>
        {copied.value ? strings.create.copied : strings.create.copy}
      </button>
    </div>
  );
}
