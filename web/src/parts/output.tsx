/** The output of a job: it follows, pauses where the reader scrolls up, and is searched. */

import {useSignal, useSignalEffect} from "@preact/signals";
import {useEffect, useMemo, useRef} from "preact/hooks";
import {OutputScreen} from "./screen.ts";
import {type End, Reading} from "../state/reading.ts";
import {Refused} from "./actions.tsx";
import {Text} from "./texts.tsx";
import * as strings from "../strings.ts";

interface Props {
  namespace: string;
  name: string;
  /** attempt is which one; 0 for the last one. */
  attempt: number;
  /** onGoing is told whether the output needs the stream of the tab. */
  onGoing: (is: boolean) => void;
}

const mostMatches = 1000;

export function OutputView({namespace, name, attempt, onGoing}: Props) {
  const box = useRef<HTMLDivElement>(null);
  const reading = useMemo(() => new Reading(namespace, name, attempt), [namespace, name, attempt]);
  const screen = useRef<OutputScreen | undefined>(undefined);
  const behind = useSignal(0),
    search = useSignal(""),
    at = useSignal(0),
    found = useSignal(0);

  useEffect(() => {
    if (!box.current) return;
    const shown = new OutputScreen(box.current, reading.output, (count) => (behind.value = count));
    screen.current = shown;
    const stop = reading.begin(() => shown.paint());
    return () => {
      stop();
      shown.close();
    };
  }, [reading]);

  useSignalEffect(() => onGoing(reading.isGoing.value));

  const look = (text: string, step: number) => {
    if (text !== search.value || step === 0) {
      search.value = text;
      found.value = screen.current?.find(text, mostMatches) ?? 0;
      at.value = 0;
    } else {
      found.value = screen.current?.find(text, mostMatches) ?? 0;
      at.value = found.value ? (at.value + step + found.value) % found.value : 0;
    }
    if (found.value) screen.current?.show(at.value);
  };
  const lines = reading.lines.value;
  const label = strings.output.label(name, attempt);
  return (
    <div class="output">
      <div class="tools" role="search">
        <label class="search">
          <span class="visually-hidden">{strings.output.search}</span>
          <input
            type="search"
            placeholder={strings.output.search}
            value={search.value}
            onInput={(event) => look(event.currentTarget.value, 0)}
            onKeyDown={(event) => {
              if (event.key === "Enter") {
                event.preventDefault();
                look(search.value, event.shiftKey ? -1 : 1);
              }
            }}
          />
        </label>
        {search.value && (
          <>
            <span class="matches" role="status">
              {strings.output.matches(at.value + 1, found.value, found.value === mostMatches)}
            </span>
            <button
              type="button"
              class="quiet"
              aria-label={strings.output.previous}
              onClick={() => look(search.value, -1)}
            >
              ↑
            </button>
            <button type="button" class="quiet" aria-label={strings.output.next} onClick={() => look(search.value, 1)}>
              ↓
            </button>
          </>
        )}
        <span class="grow" />
        <span class="count">{strings.output.lines(lines)}</span>
        <a href={reading.wholeURL()} target="_blank" rel="noopener">
          {strings.output.whole}
        </a>
      </div>
      {reading.dropped.value > 0 && <p class="note">{strings.output.dropped(reading.dropped.value)}</p>}
      {reading.notice.value && (
        <p class="note">
          <Text>{reading.notice.value}</Text>
        </p>
      )}
      <div class="lines" ref={box} role="log" aria-live="off" aria-label={label} tabIndex={0} />
      {behind.value > 0 && (
        <button type="button" class="behind" onClick={() => screen.current?.toEnd()}>
          {strings.output.newLines(behind.value)}
        </button>
      )}
      {lines === 0 && !reading.end.value && <p class="note">{strings.output.waiting}</p>}
      {reading.end.value && <TheEnd end={reading.end.value} again={() => reading.again()} />}
      {reading.refusal.value && <Refused error={reading.refusal.value} />}
    </div>
  );
}

function TheEnd({end, again}: {end: End; again: () => void}) {
  const isGood = end.outcome === "Succeeded",
    isBroken = end.outcome === "Broken";
  return (
    <div class={`end ${isGood ? "good" : "plain"}`} role="status">
      <p>
        <b>{strings.output.outcomes[end.outcome] ?? end.outcome}</b>
        {end.exitCode !== undefined && <> · {strings.output.exitCode(end.exitCode)}</>}
      </p>
      {!isGood && end.message && (
        <p>
          <Text>{end.message}</Text>
        </p>
      )}
      {end.remedy && (
        <p>
          {strings.detail.helps} <Text>{end.remedy}</Text>
        </p>
      )}
      {isBroken && (
        <button type="button" onClick={again}>
          {strings.output.again}
        </button>
      )}
    </div>
  );
}
