/** The list of what the caller can see. The URL has the filter; rows stay while somebody points at them. */

import {useComputed, useSignal, useSignalEffect} from "@preact/signals";
import {useEffect, useRef} from "preact/hooks";
import type {Line} from "../api/types.ts";
import {type Column, columns, type Filter, isFiltering, readFilter, writeFilter} from "../lib/filter.ts";
import {absoluteOf} from "../lib/format.ts";
import {isKind, type Kind, kinds} from "../lib/kinds.ts";
import {arrange, isSame, type Order} from "../lib/order.ts";
import {pathOf} from "../lib/router.ts";
import {Heading} from "../parts/frame.tsx";
import {Status} from "../parts/status.tsx";
import {Age, Command, Text} from "../parts/texts.tsx";
import {query, setQuery} from "../state/location.ts";
import {isKnown, me, namespaces} from "../state/session.ts";
import {follow, refusal} from "../state/stream.ts";
import {everything} from "../state/watch.ts";
import {Refused} from "../parts/actions.tsx";
import * as strings from "../strings.ts";

const page = 200;

export function ListPage() {
  const filter = useComputed(() => readFilter(query.value));
  const limit = useSignal(page);
  const order = useSignal<Order>({keys: [], total: 0, all: 0, waiting: 0});
  const isHeld = useSignal(false);
  const asked = useRef("");

  useEffect(() => follow(everything), []);
  useSignalEffect(() => {
    void everything.version.value;
    // Another filter, another sort or more rows are what the reader asks for: rows move for these.
    const text = `${writeFilter(filter.value)} ${limit.value}`,
      isAsked = text !== asked.current,
      now = order.peek();
    asked.current = text;
    const next = arrange(
      everything.lines.all,
      filter.value,
      limit.value,
      isHeld.value && !isAsked ? now.keys : undefined,
    );
    if (
      next.total !== now.total ||
      next.all !== now.all ||
      next.waiting !== now.waiting ||
      !isSame(next.keys, now.keys)
    ) {
      order.value = next;
    }
    everything.forget(next.keys);
  });
  const set = (change: Partial<Filter>) => setQuery(writeFilter({...filter.value, ...change}));
  const {keys, total, all, waiting} = order.value;
  const isNowhere = isKnown.value && namespaces.value.length === 0;
  const isReady = everything.health.value !== "loading" || isNowhere;
  return (
    <>
      <Heading title={strings.list.title}>
        <Filters filter={filter.value} set={set} />
      </Heading>
      {refusal.value && !isNowhere && <Refused error={refusal.value} />}
      <p class="summary">
        <span>{isReady || keys.length > 0 ? strings.list.count(total, all) : strings.frame.loading}</span>
        {isFiltering(filter.value) && (
          <button type="button" class="quiet" onClick={() => setQuery("")}>
            {strings.list.clear}
          </button>
        )}
        {waiting > 0 && <span class="waiting">{strings.list.waiting(waiting)}</span>}
      </p>
      {keys.length > 0 ? (
        <Table keys={keys} filter={filter.value} set={set} hold={(is) => (isHeld.value = is)} />
      ) : (
        isReady && <Empty filter={filter.value} isNowhere={isNowhere} />
      )}
      {total > keys.length && keys.length >= limit.value && (
        <p class="more">
          <button type="button" onClick={() => (limit.value += page)}>
            {strings.list.more(Math.min(page, total - limit.value))}
          </button>
        </p>
      )}
    </>
  );
}

function Filters({filter, set}: {filter: Filter; set: (change: Partial<Filter>) => void}) {
  const namespaces = useComputed(() => valuesOf("namespace")),
    phases = useComputed(() => valuesOf("phase"));
  return (
    <form class="filters" role="search" aria-label={strings.list.filters} onSubmit={(event) => event.preventDefault()}>
      <div class="kinds" role="group" aria-label={strings.list.kinds}>
        {(["", ...kinds] as const).map((kind) => (
          <button key={kind} type="button" aria-pressed={filter.kind === kind} onClick={() => set({kind})}>
            {kind ? strings.kindNames[kind].many : strings.list.all}
          </button>
        ))}
      </div>
      <label>
        <span class="visually-hidden">{strings.list.search}</span>
        <input
          type="search"
          placeholder={strings.list.searchHint}
          value={filter.text}
          onInput={(event) => set({text: event.currentTarget.value})}
        />
      </label>
      <Choice
        label={strings.list.namespace}
        every={strings.list.everyNamespace}
        values={namespaces.value}
        chosen={filter.namespace}
        set={(namespace) => set({namespace})}
      />
      <Choice
        label={strings.list.phase}
        every={strings.list.everyPhase}
        values={phases.value}
        chosen={filter.phase}
        set={(phase) => set({phase})}
      />
    </form>
  );
}

// As one text it changes only where a value comes or goes.
function valuesOf(field: "namespace" | "phase"): string {
  void everything.version.value;
  const values = new Set<string>();
  for (const line of everything.lines.all.values()) values.add(line[field] ?? "");
  return [...values].filter(Boolean).sort().join(" ");
}

interface ChoiceProps {
  label: string;
  every: string;
  /** values are separated by spaces, as none has one. */
  values: string;
  chosen: string;
  set: (value: string) => void;
}

function Choice({label, every, values, chosen, set}: ChoiceProps) {
  return (
    <label>
      <span class="visually-hidden">{label}</span>
      <select value={chosen} onChange={(event) => set(event.currentTarget.value)}>
        <option value="">{every}</option>
        {[...new Set([...values.split(" "), chosen])].filter(Boolean).map((value) => (
          <option key={value} value={value}>
            {value}
          </option>
        ))}
      </select>
    </label>
  );
}

interface TableProps {
  keys: string[];
  filter: Filter;
  set: (change: Partial<Filter>) => void;
  hold: (is: boolean) => void;
}

function Table({keys, filter, set, hold}: TableProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  const isOver = useRef(false);
  const settle = () => hold(isOver.current || Boolean(body.current?.contains(document.activeElement)));
  useEffect(() => () => hold(false), []);
  const head = (column: Column, title: string, name: string = column) => (
    <th
      scope="col"
      class={`col-${name}`}
      aria-sort={filter.sort === column ? (filter.isReverse ? "descending" : "ascending") : undefined}
    >
      <button
        type="button"
        class="sort"
        onClick={() => set({sort: column, isReverse: filter.sort === column && !filter.isReverse})}
      >
        <span class="visually-hidden">{strings.list.sortHint} </span>
        {title}
        <span class="arrow" aria-hidden="true">
          {filter.sort === column ? (filter.isReverse ? "↓" : "↑") : ""}
        </span>
      </button>
    </th>
  );
  const titles = strings.list.columns;
  return (
    <table class="objects">
      <caption class="visually-hidden">
        {strings.list.caption(filter.kind && strings.kindNames[filter.kind].many)}
      </caption>
      <thead>
        <tr>
          {head(columns[0], titles.name)}
          {head(columns[1], titles.phase)}
          <th scope="col" class="col-why">
            {titles.why}
          </th>
          {head(columns[2], titles.owner)}
          {head(columns[3], titles.gpus)}
          {head(columns[4], titles.since)}
        </tr>
      </thead>
      <tbody
        ref={body}
        onPointerEnter={() => {
          isOver.current = true;
          settle();
        }}
        onPointerLeave={() => {
          isOver.current = false;
          settle();
        }}
        onFocusIn={settle}
        onFocusOut={() => queueMicrotask(settle)}
      >
        {keys.map((key) => (
          <Row key={key} of={key} />
        ))}
      </tbody>
    </table>
  );
}

function Row({of}: {of: string}) {
  const row = everything.row(of);
  if (!row) return null;
  return <Cells line={row.value.line} isGone={row.value.isGone} />;
}

function Cells({line, isGone}: {line: Line; isGone: boolean}) {
  const kind = line.kind as Kind;
  const place = pathOf({page: "detail", kind, namespace: line.namespace ?? "", name: line.name ?? ""});
  const why = line.nextScheduleTime
    ? strings.list.next(line.message ?? "", absoluteOf(line.nextScheduleTime))
    : line.message;
  return (
    <tr class={isGone ? "gone" : ""}>
      <th scope="row" class="col-name">
        <a href={place}>
          <Text>{line.name}</Text>
        </a>
        <small>
          {isKind(kind) ? strings.kindNames[kind].one : ""} · <Text>{line.namespace}</Text>
        </small>
      </th>
      <td class="col-phase">
        <Status phase={isGone ? strings.list.gone : line.phase} />
      </td>
      <td class="col-why">
        <span class="clip" title={why}>
          <Text>{why}</Text>
        </span>
      </td>
      <td class="col-owner">
        <span class="clip" title={line.owner}>
          <Text>{line.owner}</Text>
        </span>
      </td>
      <td class="col-gpus">{line.gpus || ""}</td>
      <td class="col-since">
        <Age time={line.since} />
      </td>
    </tr>
  );
}

function Empty({filter, isNowhere}: {filter: Filter; isNowhere: boolean}) {
  if (filter.text || filter.phase) return <p class="empty">{strings.list.noneFound}</p>;
  const first = filter.namespace || namespaces.value[0]?.name || "";
  return (
    <div class="empty">
      <h2>{isNowhere ? strings.list.noNamespace : strings.list.none}</h2>
      <p>{isNowhere ? strings.list.noNamespaceHelp : strings.list.noneHelp}</p>
      <Command
        label={strings.create.command}
        text={isNowhere ? strings.list.noNamespaceCommand(me.value?.name ?? "") : strings.list.fill(filter.kind, first)}
      />
    </div>
  );
}
