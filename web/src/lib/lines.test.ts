import assert from "node:assert/strict";
import {test} from "node:test";
import type {Line} from "../api/types.ts";
import {keyOf, Lines} from "./lines.ts";
import {EventParser} from "./sse.ts";

const lineOf = (name: string, more: Partial<Line> = {}): Line => ({
  kind: "jobs",
  namespace: "a",
  name,
  uid: name,
  ...more,
});
const event = (type: string, line?: Line, id = "") => ({id, type, data: JSON.stringify({line, detail: "because"})});
const names = (lines: Lines) => [...lines.all.values()].map((line) => line.name).sort();

test("Lines: a whole state replaces the former one when it is whole", () => {
  const lines = new Lines();
  for (const one of [event("sync"), event("put", lineOf("a")), event("put", lineOf("b"))]) lines.take(one);
  assert.equal(lines.health, "loading");
  lines.take(event("ready"));
  assert.equal(lines.health, "whole");
  lines.take(event("sync"));
  lines.take(event("put", lineOf("b")));
  assert.deepEqual(names(lines), ["a", "b"], "nothing vanishes in between");
  lines.take(event("ready"));
  assert.deepEqual(names(lines), ["b"]);
});

test("Lines: a deletion is of the object that is meant", () => {
  const lines = new Lines();
  lines.take(event("put", lineOf("a", {uid: "2"})));
  lines.take(event("del", lineOf("a", {uid: "1"})));
  assert.deepEqual(names(lines), ["a"]);
  lines.take(event("del", lineOf("a", {uid: "2"})));
  assert.deepEqual(names(lines), []);
});

test("Lines: what has changed is told once, and the cursor goes on", () => {
  const lines = new Lines();
  lines.take(event("put", lineOf("a"), "7"));
  lines.take({id: "8", type: "", data: ""});
  assert.deepEqual([...lines.takeChanged()], [keyOf(lineOf("a"))]);
  assert.equal(lines.takeChanged().size, 0);
  assert.equal(lines.cursor, "8");
});

test("Lines: a change ends that they may be old", () => {
  const lines = new Lines();
  for (const one of [event("sync"), event("ready"), event("stale")]) lines.take(one);
  assert.equal(lines.health, "stale");
  lines.take(event("put", lineOf("a")));
  assert.equal(lines.health, "whole");
});

test("EventParser: events come whole, however the stream is cut", () => {
  const text = ': hello\n\nid: 1\nevent: put\ndata: {"a":1}\n\n: \nid: 2\n\nevent: two\ndata: a\ndata: b\n\n';
  const want = [
    {id: "1", type: "put", data: '{"a":1}'},
    {id: "2", type: "", data: ""},
    {id: "2", type: "two", data: "a\nb"},
  ];
  for (let size = 1; size <= text.length; size++) {
    const parser = new EventParser(),
      found = [];
    for (let at = 0; at < text.length; at += size) found.push(...parser.push(text.slice(at, at + size)));
    assert.deepEqual(found, want, `in parts of ${size}`);
  }
});
