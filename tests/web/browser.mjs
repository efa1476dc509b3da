// What the tests share: one chromium, pages that are signed in, and a bed that does what is asked for.
// A page that writes an error to its console, or has a request fail, fails its test.
import assert from "node:assert/strict";
import {createRequire} from "node:module";
import {readFileSync} from "node:fs";
import {after, before} from "node:test";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const {chromium} = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const bed = JSON.parse(process.env.HELIOSTAT_BED);

let browser;

/** useBrowser starts chromium for the tests of a file. */
export function useBrowser(...flags) {
  before(async () => {
    browser = await chromium.launch({
      executablePath: "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", ...flags],
    });
  });
  after(() => browser?.close());
}

/** contextOf returns a context of the browser. It closes with the test. */
export async function contextOf(t, settings) {
  const context = await browser.newContext({ignoreHTTPSErrors: true, ...settings});
  t.after(() => context.close());
  return context;
}

/** ask asks the bed for something. */
export async function ask(what, query = {}, body = undefined) {
  const answer = await fetch(`${bed.control}/${what}?${new URLSearchParams(query)}`, {
    method: "POST",
    body: body && JSON.stringify(body),
  });
  assert.ok(answer.ok, `${what}: ${answer.ok || (await answer.text())}`);
}

/** open returns a page at a place, of somebody who is signed in. It closes with the test. */
export async function open(t, path, {as = "editor", allowed = [], context: settings = {}, ...more} = {}) {
  const context =
    more.within ??
    (await contextOf(t, {
      baseURL: bed.url,
      viewport: {width: 1280, height: 800},
      locale: "en-GB",
      timezoneId: "UTC",
      ...settings,
    }));
  if (as && !more.within) await signIn(context, as);
  const page = await context.newPage();
  const wrong = [];
  const note = (text) => allowed.some((one) => text.includes(one)) || wrong.push(text);
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && note(`console: ${message.text()}`));
  page.on("pageerror", (error) => note(`error: ${error.message}`));
  page.on(
    "requestfailed",
    (request) =>
      request.failure()?.errorText !== "net::ERR_ABORTED" &&
      note(`failed: ${request.url()} ${request.failure()?.errorText}`),
  );
  page.on(
    "response",
    (response) => response.status() >= 400 && note(`answered: ${response.status()} ${response.url()}`),
  );
  t.after(() => assert.deepEqual(wrong, [], "the console has no error, and no request fails"));
  page.setDefaultTimeout(30_000);
  if (more.prepare) await more.prepare(page, context);
  await page.goto(path);
  return page;
}

/** read returns what the API says of an object, asked as the page asks. */
export function read(page, kind, name) {
  return page.evaluate(async (path) => (await fetch(path)).json(), `/v1/namespaces/${bed.namespace}/${kind}/${name}`);
}

async function signIn(context, who) {
  const answer = await context.request.post("/session", {data: {token: bed[who]}, headers: {Origin: bed.url}});
  assert.equal(answer.status(), 204, `sign in as ${who}`);
}

/** checkAccess fails where axe finds something. */
export async function checkAccess(page, what) {
  const found = await page.evaluate(async (source) => {
    if (!window.axe) {
      // The page allows no script but its own files; the test is none of the page's.
      const policy = window.trustedTypes?.createPolicy(`axe${Math.random()}`, {createScript: (text) => text});
      (0, eval)(policy ? policy.createScript(source) : source);
    }
    const {violations} = await window.axe.run(document, {resultTypes: ["violations"]});
    return violations.map(
      (one) =>
        `${one.id}: ${one.help}: ${one.nodes.map((node) => `${node.target} ${node.any.map((any) => any.message).join("; ")}`).join(" | ")}`,
    );
  }, axe);
  assert.deepEqual(found, [], `axe on ${what}`);
}
