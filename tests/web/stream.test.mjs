// The one stream of a tab: it breaks and goes on, ends with the tab's hiding, and moves no row that somebody points at.
import {test} from "node:test";
import assert from "node:assert/strict";
import {ask, bed, open, useBrowser} from "./browser.mjs";

useBrowser("--disable-http2");

const rows = (page) => page.locator(".objects tbody th a").allTextContents();
const clusterOf = (name, message = "head and 0 of 0 workers are ready") => ({
  apiVersion: "heliostat.dev/v1beta1",
  kind: "ComputeCluster",
  metadata: {name},
  spec: {rayVersion: "2.60.0"},
  status: {
    phase: "Ready",
    conditions: [
      {
        type: "Ready",
        status: "True",
        reason: "AllReady",
        message,
        lastTransitionTime: new Date().toISOString().replace(/\.\d+/, ""),
      },
    ],
  },
});

/** keepStates has a page keep each state of its connection. */
async function keepStates(page) {
  await page.evaluate(() => {
    window.states = [];
    const look = () => {
      const now = document.querySelector(".connection")?.textContent;
      if (now && window.states.at(-1) !== now) window.states.push(now);
    };
    look();
    new MutationObserver(look).observe(document.querySelector(".top"), {
      subtree: true,
      childList: true,
      characterData: true,
      attributes: true,
    });
  });
}

test("a stream that breaks goes on, and no row is lost or doubled", async (t) => {
  const page = await open(t, "/ui/", {
    allowed: ["ERR_CONNECTION", "ERR_EMPTY_RESPONSE", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_SOCKET"],
  });
  await page.locator(".connection.live").waitFor();
  await page.locator(".objects tbody tr").first().waitFor();
  await keepStates(page);
  const before = await rows(page);
  await ask("drop");
  await ask("put", {}, clusterOf("a-while-away"));
  await page.locator(".objects a", {hasText: "a-while-away"}).waitFor();
  const after = await rows(page);
  assert.deepEqual(after, ["a-while-away", ...before].sort());
  assert.deepEqual(await page.evaluate(() => window.states), ["Live", "Reconnecting", "Live"]);
});

/** setHidden has a page believe that its tab is hidden, or is not. */
const setHidden = (page, is) =>
  page.evaluate((is) => {
    Object.defineProperty(document, "hidden", {value: is, configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
  }, is);

test("seven tabs over HTTP/1.1 are all live", async (t) => {
  const first = await open(t, "/ui/"),
    pages = [first];
  await first.locator(".connection.live").waitFor();
  for (let i = 1; i < 7; i++) {
    await setHidden(pages.at(-1), true);
    const page = await open(t, "/ui/", {within: first.context()});
    await page.locator(".objects tbody tr").first().waitFor();
    pages.push(page);
  }
  for (const [i, page] of pages.entries()) {
    await setHidden(pages[(i + 6) % 7], true);
    await setHidden(page, false);
    const name = `z-tab-${i}`;
    await ask("put", {}, clusterOf(name));
    await page.locator(".objects a", {hasText: name}).waitFor();
    assert.match(await page.locator(".connection").textContent(), /Live/);
  }
});

test("rows stay under pointer and focus, and change where they are", async (t) => {
  const page = await open(t, "/ui/?text=held");
  for (const name of ["held-c", "held-d"]) await ask("put", {}, clusterOf(name));
  await page.locator(".objects a", {hasText: "held-d"}).waitFor();
  for (const [how, begin, end] of [
    ["pointer", () => page.locator(".objects tbody tr").first().hover(), () => page.mouse.move(5, 5)],
    ["focus", () => page.locator(".objects tbody a").first().focus(), () => page.locator("h1").focus()],
  ]) {
    await begin();
    const before = await rows(page),
      box = await page.locator(".objects tbody tr").first().boundingBox();
    await ask("put", {}, clusterOf(`held-a-${how}`));
    await ask(
      "status",
      {kind: "ComputeCluster", name: "held-d"},
      {conditions: clusterOf("", `changed under ${how}`).status.conditions},
    );
    await page.getByText(`changed under ${how}`).waitFor();
    await page.locator(".waiting").waitFor();
    assert.deepEqual(await rows(page), before, how);
    assert.deepEqual(await page.locator(".objects tbody tr").first().boundingBox(), box, `${how}: it is where it was`);
    await end();
    await page.locator(".objects a", {hasText: `held-a-${how}`}).waitFor();
  }
});

test("a link, the way back and a filter are addresses", async (t) => {
  const page = await open(t, "/ui/?kind=clusters&sort=-name");
  await page.locator(".objects a", {hasText: "training"}).click();
  await page.waitForURL(`**/ui/clusters/${bed.namespace}/training`);
  await page.locator("h1", {hasText: "training"}).waitFor();
  await page.goBack();
  await page.locator(".objects a", {hasText: "demo"}).waitFor();
  const names = await rows(page);
  assert.deepEqual(names, [...names].sort().reverse());
  await page.getByPlaceholder("Name, owner or reason").fill("ANNA@");
  await page.waitForURL(/text=ANNA/);
  await page.locator(".objects a", {hasText: "notebook"}).waitFor({state: "detached"}); // rows follow the address
  assert.deepEqual(await rows(page), ["training", "demo"]);
});
