// What users do, by keyboard alone.
import {test} from "node:test";
import assert from "node:assert/strict";
import {bed, open, read, useBrowser} from "./browser.mjs";

useBrowser();

/** tabTo presses Tab until what has the focus is called so. */
async function tabTo(page, name, {within = "body", key = "Tab"} = {}) {
  for (let presses = 0; presses < 80; presses++) {
    await page.keyboard.press(key);
    const found = await page.evaluate(
      ([name, within]) => {
        const now = document.activeElement;
        const label = now?.labels?.[0]?.textContent ?? "";
        const said = `${now?.getAttribute("aria-label") ?? ""} ${label} ${now?.textContent ?? ""}`.trim();
        return now?.closest(within) !== null && new RegExp(name).test(said);
      },
      [name, within],
    );
    if (found) return;
  }
  assert.fail(`nothing that is called ${name} gets the focus`);
}

/** specOf returns the spec of an object, as the API has it. */
const specOf = async (page, kind, name) => (await read(page, kind, name)).object.spec;

test("a cluster is created from a preset", async (t) => {
  const page = await open(t, "/ui/", {allowed: ["422"]});
  await page.locator(".objects tbody tr").first().waitFor();
  await page.keyboard.press("Tab");
  assert.equal(
    await page.evaluate(() => document.activeElement.textContent),
    "Skip to the content",
    "the way past the navigation comes first",
  );
  await tabTo(page, "^Create$", {within: "nav"});
  await page.keyboard.press("Enter");
  await page.locator(".options").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1", "the focus goes to the new place");
  await tabTo(page, "^Name \\(required");
  await page.keyboard.type("Bad Name");
  await page.locator(".wrong").waitFor();
  assert.match(await page.locator(".verdict").textContent(), /needs a change/);
  await page.keyboard.press("Control+A");
  await page.keyboard.type("mine");
  await tabTo(page, "^Workers");
  await page.keyboard.press("ArrowUp");
  await page.locator(".verdict.good").waitFor();
  const manifest = await page.locator(".preview pre").first().textContent();
  assert.match(manifest, /name: mine\n[^]*replicas: 2\n/);
  assert.match(
    await page.locator(".preview pre").nth(1).textContent(),
    /^kubectl create -n team-a -f - <<'EOF'\napiVersion/,
  );
  await tabTo(page, "^Create$", {within: "form"});
  await page.keyboard.press("Enter");
  await page.waitForURL(`**/ui/clusters/${bed.namespace}/mine`);
  await page.locator("h1", {hasText: "mine"}).waitFor();
  assert.equal((await specOf(page, "clusters", "mine")).workerGroups[0].replicas, 2);
});

test("an output is followed", async (t) => {
  const page = await open(t, "/ui/?kind=jobs");
  await page.locator(".objects tbody tr").first().waitFor();
  await tabTo(page, "^train$");
  await page.keyboard.press("Enter");
  const lines = page.locator(".lines");
  await lines.getByText("epoch 1:").waitFor();
  await tabTo(page, "^Output of train, attempt 1");
  const count = async () => (await lines.textContent()).split("\n").length;
  const before = await count();
  await page.waitForFunction(
    (before) => document.querySelector(".lines").textContent.split("\n").length > before,
    before,
  );
  await tabTo(page, "^Search the output", {key: "Shift+Tab"});
  await page.keyboard.type("LOADING DATA");
  await page.locator(".matches", {hasText: /^1 of \d+$/}).waitFor();
});

test("a cluster is suspended", async (t) => {
  const page = await open(t, `/ui/clusters/${bed.namespace}/training`);
  await page.locator(".phases").waitFor();
  await tabTo(page, "^Suspend$");
  await page.keyboard.press("Enter");
  const question = page.locator("dialog[open]");
  await question.waitFor();
  assert.match(await question.textContent(), /Suspend cluster training\?.*This removes:.*4 pods.*training-head-/);
  await page.keyboard.press("Escape");
  await question.waitFor({state: "detached"});
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Suspend", "the focus goes back");
  assert.notEqual((await specOf(page, "clusters", "training")).suspend, true, "nothing is done without an answer");
  await page.keyboard.press("Enter");
  await tabTo(page, "^Suspend$", {within: "dialog"});
  await page.keyboard.press("Enter");
  await question.waitFor({state: "detached"});
  assert.equal((await specOf(page, "clusters", "training")).suspend, true);
  await page.getByRole("status").filter({hasText: "Suspending: training"}).waitFor({state: "attached"});
});

test("a service goes back to an earlier version", async (t) => {
  const page = await open(t, `/ui/services/${bed.namespace}/sort`);
  await page.locator(".traffic").first().waitFor();
  await tabTo(page, "^Undo$");
  await page.keyboard.press("Enter");
  await tabTo(page, "^Version", {within: "dialog"});
  await page.keyboard.type("3");
  await page.keyboard.press("Enter");
  await page.locator("dialog").waitFor({state: "detached"});
  assert.equal((await specOf(page, "services", "sort")).serveConfig.applications[0].import_path, "sort:former");
});
