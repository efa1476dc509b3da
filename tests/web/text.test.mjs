// What others wrote is text, whatever it is.
import {test} from "node:test";
import assert from "node:assert/strict";
import {ask, bed, open, useBrowser} from "./browser.mjs";

useBrowser();

const hostile = "<script>document.title='taken'</script>\u202ereversed\u001b[31m";
const job = (name, owner, message) => ({
  apiVersion: "heliostat.dev/v1beta1",
  kind: "ClusterJob",
  metadata: {name, annotations: {"heliostat.dev/owner": owner}},
  spec: {clusterRef: {name: "demo"}, entrypoint: hostile},
  status: {
    phase: "Running",
    clusterName: "demo",
    conditions: [
      {type: "Ready", status: "True", reason: "Running", message, lastTransitionTime: "2026-01-01T00:00:00Z"},
    ],
  },
});

test("names, owners and messages are text", async (t) => {
  await ask("put", {}, job("hostile-names", hostile, hostile));
  const page = await open(t, "/ui/?text=hostile-names");
  const row = page.locator(".objects tbody tr").first();
  await row.waitFor();
  for (const cell of [".col-why bdi", ".col-owner bdi"]) {
    assert.equal(
      await row.locator(cell).textContent(),
      "<script>document.title='taken'</script>\u202ereversed",
      "the sequence of a terminal is left out",
    );
  }
  await row.locator("a").click();
  await page.locator(".facts code").waitFor();
  assert.match(await page.locator(".facts code").textContent(), /^<script>/);
  assert.equal(await page.title(), "hostile-names · Heliostat");
  assert.equal(await page.locator("main script, main img").count(), 0);
});

test("lines are text, and stay within themselves", async (t) => {
  await ask("put", {}, job("hostile-lines", "eve", "attempt 1 runs"));
  await ask("run", {job: "hostile-lines", entrypoint: "hostile 10"});
  const page = await open(t, `/ui/jobs/${bed.namespace}/hostile-lines`);
  await page.locator(".lines").getByText("line 10 of many").waitFor();
  const lines = (await page.locator(".lines").textContent()).split("\n");
  const at = lines.findIndex((line) => line.startsWith("<script>"));
  assert.ok(at >= 0, "markup is text");
  assert.deepEqual(lines.slice(at + 1, at + 5), [
    "red link cleared",
    "\u202eright to left\u202c and \u200fmarks\u200e",
    "progress 90 %",
    "end of the first lines",
  ]);
  const long = lines.slice(
    at + 5,
    lines.findIndex((line) => line.startsWith("line 1 of many")),
  );
  assert.equal(long.join("").length, "long ".length + 2 ** 20, "a line of a megabyte is whole");
  assert.equal(await page.title(), "hostile-lines · Heliostat");
  assert.equal(await page.locator(".lines script, .lines img").count(), 0);
  const {wide, screen} = await page.evaluate(() => ({wide: document.documentElement.scrollWidth, screen: innerWidth}));
  assert.ok(wide <= screen, "it does not widen the page");
});
