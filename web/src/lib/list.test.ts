import assert from "node:assert/strict";
import {test} from "node:test";
import type {Line} from "../api/types.ts";
import {compare, isFiltering, matches, readFilter, writeFilter} from "./filter.ts";
import {keyOf} from "./lines.ts";
import {arrange, isSame} from "./order.ts";
import {isOurs, parseRoute, pathOf, type Route} from "./router.ts";

const noFilter = readFilter("");
const lineOf = (name: string, more: Partial<Line> = {}): Line => ({kind: "jobs", namespace: "a", name, ...more});
const mapOf = (...lines: Line[]) => new Map(lines.map((line) => [keyOf(line), line]));

test("router: each place has one address", () => {
  const places: [string, Route][] = [
    ["/ui/", {page: "list"}],
    ["/ui/new", {page: "new"}],
    ["/ui/me", {page: "me"}],
    ["/ui/signin", {page: "signin"}],
    ["/ui/jobs/team-a/x%2Fy", {page: "detail", kind: "jobs", namespace: "team-a", name: "x/y"}],
  ];
  for (const [path, route] of places) {
    assert.deepEqual(parseRoute(path), route);
    assert.equal(pathOf(route), path);
  }
});

test("router: other addresses are of nothing", () => {
  for (const path of [
    "/",
    "/v1/me",
    "/ui/pods/a/b",
    "/ui/jobs/a",
    "/ui/jobs/a/b/c",
    "/ui/jobs/a/%zz",
    "/ui/new/more",
  ]) {
    assert.deepEqual(parseRoute(path), {page: "none"}, path);
  }
});

test("router: a sign-in returns to places of the page alone", () => {
  for (const [path, want] of [
    ["/ui/me", true],
    ["//evil/ui/", false],
    ["https://evil/ui/", false],
    ["/ui/\\evil", false],
    ["/v1/me", false],
  ] as const) {
    assert.equal(isOurs(path), want, path);
  }
});

test("filter: a query says it, and without defaults", () => {
  const filter = {
    ...noFilter,
    kind: "jobs" as const,
    namespace: "a",
    phase: "Failed",
    text: "x y&z",
    sort: "since" as const,
    isReverse: true,
  };
  assert.deepEqual(readFilter(writeFilter(filter)), filter);
  assert.equal(writeFilter(noFilter), "");
  assert.deepEqual(readFilter("?kind=pods&sort=-colour"), noFilter);
  assert.ok(isFiltering(filter) && !isFiltering({...noFilter, sort: "since"}));
});

test("filter: a text is found in name, owner, code and message", () => {
  const line = lineOf("train", {owner: "Anna", code: "HeadUnreachable", message: "no answer"});
  for (const [text, want] of [
    ["RAI", true],
    ["anna", true],
    ["unreachable", true],
    ["answer", true],
    ["team", false],
  ] as const) {
    assert.equal(matches({...noFilter, text}, line), want, text);
  }
});

test("filter: lines are in the order of a column, and then of their names", () => {
  const lines = [lineOf("c", {gpus: 1}), lineOf("a", {gpus: 10}), lineOf("b")];
  const order = (sort: "name" | "gpus", isReverse: boolean) =>
    [...lines]
      .sort((a, b) => compare({...noFilter, sort, isReverse}, a, b))
      .map((line) => line.name)
      .join("");
  assert.deepEqual(
    [order("name", false), order("name", true), order("gpus", false), order("gpus", true)],
    ["abc", "cba", "bca", "acb"],
  );
});

test("order: rows that are held stay, and what waits is counted", () => {
  const before = arrange(mapOf(lineOf("b"), lineOf("d")), noFilter, 10);
  const after = mapOf(lineOf("a"), lineOf("b"), lineOf("c"));
  assert.deepEqual(arrange(after, noFilter, 10, before.keys), {keys: before.keys, total: 3, all: 3, waiting: 3});
  assert.deepEqual(arrange(after, noFilter, 10).keys, ["jobs/a/a", "jobs/a/b", "jobs/a/c"]);
});

test("order: so many rows are shown, and all are counted", () => {
  const all = mapOf(lineOf("c"), lineOf("a"), lineOf("b", {namespace: "z"}));
  assert.deepEqual(arrange(all, {...noFilter, namespace: "a"}, 1), {keys: ["jobs/a/a"], total: 2, all: 3, waiting: 0});
  assert.ok(isSame(["a"], ["a"]) && !isSame(["a"], ["b"]) && !isSame(["a"], ["a", "b"]));
});
