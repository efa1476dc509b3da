import assert from "node:assert/strict";
import {test} from "node:test";
import {blockSize, bytesOf, mostLines, offsetIn, Output} from "./output.ts";
import {cut, overwrite, stripAnsi} from "./text.ts";

const encoder = new TextEncoder();
const linesOf = (output: Output) => output.blocks.flatMap((block) => block.lines);

test("Output: lines come whole, however the bytes are cut", () => {
  const text = "one\r\ntwo ü\n\nprogress 1\rprogress 2\nlast",
    bytes = encoder.encode(text);
  for (let size = 1; size <= bytes.length; size++) {
    const output = new Output();
    for (let at = 0; at < bytes.length; at += size) output.push(bytes.slice(at, at + size));
    assert.deepEqual(linesOf(output), ["one", "two ü", "", "progress 2", "last"], `in parts of ${size}`);
    assert.equal(output.count, 5);
  }
});

test("Output: a line goes on where it has no end yet", () => {
  const output = new Output();
  output.push(encoder.encode("a"));
  output.push(encoder.encode("b\nc"));
  assert.deepEqual(linesOf(output), ["ab", "c"]);
});

test("Output: the oldest blocks go first", () => {
  const output = new Output(),
    more = 3 * blockSize;
  output.push(encoder.encode("x\n".repeat(mostLines + more)));
  assert.equal(output.dropped, more);
  assert.equal(output.count, mostLines + more);
  assert.equal(output.blocks[0]?.first, more);
});

test("Output: a line of a megabyte is broken, and no character is lost", () => {
  const output = new Output(),
    long = "0123456789".repeat(100_000);
  output.push(encoder.encode(`${long}\nnext\n`));
  const lines = linesOf(output);
  assert.ok(lines.every((line) => line.length <= 4096));
  assert.equal(lines.slice(0, -1).join(""), long);
  assert.equal(lines.at(-1), "next");
});

test("Output: a text is found, and where", () => {
  const output = new Output();
  output.push(encoder.encode("first\nAn Error, an error\nlast error"));
  const found = output.find("error", 10);
  assert.deepEqual(found, [
    {line: 1, at: 3},
    {line: 1, at: 13},
    {line: 2, at: 5},
  ]);
  const block = output.blocks[0]!,
    text = block.lines.join("\n");
  for (const match of found) assert.equal(text.slice(offsetIn(block, match)).slice(0, 5).toLowerCase(), "error");
  assert.equal(output.find("error", 2).length, 2);
  assert.equal(output.find("", 2).length, 0);
});

test("bytesOf: base64 is read byte for byte", () => {
  assert.deepEqual([...bytesOf("AP9/")], [0, 255, 127]);
});

test("text: what only terminals understand is left out", () => {
  const cases: [string, string][] = [
    ["plain\ttext", "plain\ttext"],
    ["\x1b[1;31mred\x1b[0m", "red"],
    ["\x1b]8;;https://x\x07link\x1b]8;;\x07", "link"],
    ["\x1b]0;title\x1b\\after", "after"],
    ["a\x1b(Bb\x08c", "abc"],
    ["\x1b[2J\x1b[H<script>", "<script>"],
    ["cut \x1b[", "cut "],
  ];
  for (const [text, want] of cases) assert.equal(stripAnsi(text), want, JSON.stringify(text));
  assert.equal(overwrite("10 %\r90 %\r"), "90 %");
  assert.equal(overwrite("\r"), "");
  assert.equal(cut("abc", 2), "ab…");
  assert.equal(cut("abc", 3), "abc");
});
