// The page and a dashboard by the host names of a gateway that others wrote.
import {test} from "node:test";
import assert from "node:assert/strict";
import {bed, open, useBrowser} from "./browser.mjs";

useBrowser(`--host-resolver-rules=MAP *.test ${bed.at}`);

test(`the page and a dashboard by ${bed.front}`, {timeout: 120_000}, async (t) => {
  const page = await open(t, "about:blank", {as: "", allowed: ["401"]}),
    other = await page.context().newPage();
  for (let tries = 0; ; tries++) {
    // A gateway needs a moment until it has read what leads here.
    const found = await other.goto(`${bed.url}/ui/signin`).catch(() => undefined);
    if (found?.ok()) break;
    assert.ok(tries < 60, `${bed.url} is answered ${found?.status()}`);
    await page.waitForTimeout(500);
  }
  await other.close();
  await page.goto("/ui/signin");
  await page.getByLabel("Kubernetes token").fill(bed.editor);
  await page.getByRole("button", {name: "Sign in"}).click();
  await page.locator(".connection.live").waitFor(); // its stream comes through
  await page.locator(".objects tbody th a", {hasText: /^training$/}).click();
  const coming = page.context().waitForEvent("page");
  await page.getByRole("link", {name: "Ray dashboard"}).click();
  const dashboard = await coming;
  await dashboard.locator("h1", {hasText: "training"}).waitFor();
  assert.equal(dashboard.url(), `${bed.dashboards}/${bed.namespace}/training/`);
  assert.equal(await dashboard.evaluate(async () => (await fetch("api/version")).text()), "done by training");
  const line = await dashboard.evaluate(
    () =>
      new Promise((done, fail) => {
        const socket = new WebSocket(`wss://${location.host}${location.pathname}api/jobs/x/logs/tail`);
        socket.onmessage = (message) => done(message.data);
        socket.onclose = (closed) => fail(new Error(`the WebSocket closed with ${closed.code}`));
      }),
  );
  assert.equal(line, "a line of training");
  t.diagnostic(`by ${bed.front}: the page, its stream, a dashboard and its WebSocket`);
});
