/** Numbers and times as people read them. */

const units: [number, string][] = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];

/** durationOf returns a span of milliseconds in its two largest units. */
export function durationOf(milliseconds: number): string {
  let rest = Math.max(0, Math.round(milliseconds / 1000));
  const first = units.findIndex(([size]) => rest >= size);
  if (first < 0) return "0 s";
  const parts: string[] = [];
  for (const [size, unit] of units.slice(first, first + 2)) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${unit}`);
  }
  return parts.join(" ");
}

/** ageOf returns how long ago a time is, in its largest unit. */
export function ageOf(time: string | undefined, now: number): string {
  const at = time ? Date.parse(time) : Number.NaN;
  if (Number.isNaN(at)) return "";
  const seconds = Math.max(0, Math.floor((now - at) / 1000));
  const [size, unit] = units.find(([one]) => seconds >= one) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** spanOf returns how long something took, or takes until now. */
export function spanOf(since: string | undefined, until: string | undefined, now: number): string {
  const from = since ? Date.parse(since) : Number.NaN;
  const to = until ? Date.parse(until) : now;
  return Number.isNaN(from) || Number.isNaN(to) ? "" : durationOf(to - from);
}

/** absoluteOf returns a time in the reader's zone. */
export function absoluteOf(time: string): string {
  const at = new Date(time);
  return Number.isNaN(at.getTime()) ? time : at.toLocaleString(undefined, {dateStyle: "medium", timeStyle: "medium"});
}

const numbers = new Intl.NumberFormat();

/** countOf returns a number with its noun. */
export function countOf(count: number, one: string, many: string): string {
  return `${numbers.format(count)} ${count === 1 ? one : many}`;
}
