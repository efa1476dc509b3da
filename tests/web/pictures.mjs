// Makes the pictures in docs/images: go test ./tests/web -files pictures.mjs, on an API server as step_web has it.
import {fileURLToPath} from "node:url";
import {test} from "node:test";
import {bed, open, useBrowser} from "./browser.mjs";

useBrowser();

const shot = (page, name) =>
  page.screenshot({path: fileURLToPath(new URL(`../../docs/images/page-${name}.png`, import.meta.url))});
const size = {viewport: {width: 1120, height: 640}};

test("pictures", async (t) => {
  const list = await open(t, "/ui/", {context: size});
  await list.locator(".objects tbody tr").nth(6).waitFor();
  await shot(list, "list");
  await list.goto(`/ui/clusters/${bed.namespace}/training`);
  await list.locator(".phases").waitFor();
  await shot(list, "cluster");
  await list.goto("/ui/new");
  await list.getByLabel("Name (required)").fill("mine");
  await list.locator(".verdict.good").waitFor();
  await shot(list, "create");
  const job = await open(t, `/ui/jobs/${bed.namespace}/train`, {context: {...size, colorScheme: "dark"}});
  await job.locator(".lines").getByText("epoch 9:").waitFor();
  await job.locator("#output").scrollIntoViewIfNeeded();
  await shot(job, "output");
});
