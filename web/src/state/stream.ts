/**
 * The one stream of this tab. In: a source, which says what to ask for and takes what comes. Out: events to the
 * source, and how the stream is.
 *
 * A tab that is hidden has none: over HTTP/1.1 a browser opens six connections to a host. A stream that breaks is
 * asked for again, from where it was; the waits grow to eight seconds.
 */

import {signal} from "@preact/signals";
import {check, Refusal} from "../api/client.ts";
import type {ServerEvent} from "../lib/lines.ts";
import {EventParser} from "../lib/sse.ts";
import {askToSignIn} from "./session.ts";

export interface Source {
  /** url returns what to ask for now. */
  url(): string;
  take(event: ServerEvent): void;
  /** begins is called when an answer begins. */
  begins?(): void;
  /** isOver reports whether nothing more will come. */
  isOver(): boolean;
  /** isStale reports whether what came may be old. */
  isStale?(): boolean;
}

export type Connection = "connecting" | "live" | "reconnecting" | "stale" | "off";

export const connection = signal<Connection>("off");
/** refusal is why there is no stream, and will be none by itself. */
export const refusal = signal<Refusal | undefined>(undefined);

// The server says something each 15 s.
const quietFor = 40_000;
const waits = [500, 1000, 2000, 4000, 8000];

let source: Source | undefined;
let running: AbortController | undefined;

/** follow makes a source the one of this tab, until the function that it returns is called. */
export function follow(next: Source): () => void {
  stop();
  source = next;
  connection.value = "connecting";
  refusal.value = undefined;
  start();
  return () => {
    if (source !== next) return;
    stop();
    source = undefined;
    connection.value = "off";
  };
}

/** watchVisibility ends the stream with each hiding of the tab, and begins it again. */
export function watchVisibility(): void {
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  addEventListener("online", () => {
    if (connection.value !== "live") {
      stop();
      start();
    }
  });
}

function stop(): void {
  running?.abort();
  running = undefined;
}

function start(): void {
  if (!source || running || document.hidden || source.isOver()) return;
  running = new AbortController();
  void run(source, running.signal);
}

async function run(from: Source, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted && !from.isOver(); failures++) {
    const began = await read(from, signal);
    if (signal.aborted) return;
    if (refusal.value) {
      connection.value = "off";
      return;
    }
    if (from.isOver()) break;
    connection.value = "reconnecting";
    if (began) failures = 0;
    await pause(waits[Math.min(failures, waits.length - 1)] ?? 0, signal);
  }
  if (!signal.aborted) connection.value = "off";
}

/** read reads one answer to its end, and reports whether there was one. */
async function read(from: Source, outer: AbortSignal): Promise<boolean> {
  const inner = new AbortController();
  const end = () => inner.abort();
  outer.addEventListener("abort", end);
  let timer = setTimeout(end, quietFor),
    began = false;
  try {
    const answer = await fetch(from.url(), {signal: inner.signal, headers: {Accept: "text/event-stream"}});
    await check(answer);
    began = true;
    from.begins?.();
    const parser = new EventParser(),
      decoder = new TextDecoder(),
      reader = answer.body!.getReader();
    connection.value = from.isStale?.() ? "stale" : "live";
    for (;;) {
      const {done, value} = await reader.read();
      if (done || outer.aborted) return began;
      clearTimeout(timer);
      timer = setTimeout(end, quietFor);
      for (const event of parser.push(decoder.decode(value, {stream: true}))) from.take(event);
      connection.value = from.isStale?.() ? "stale" : "live";
    }
  } catch (error) {
    if (error instanceof Refusal && !outer.aborted) refuse(error);
    return began;
  } finally {
    clearTimeout(timer);
    inner.abort();
    outer.removeEventListener("abort", end);
  }
}

// What passes by itself is asked for again.
function refuse(error: Refusal): void {
  if (error.code === 401) {
    refusal.value = error;
    askToSignIn();
  } else if (error.code < 500 && error.code !== 429) {
    refusal.value = error;
  }
}

function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds * (0.75 + Math.random() / 2));
    signal.addEventListener("abort", done);
  });
}
