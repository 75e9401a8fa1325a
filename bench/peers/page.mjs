// Drives the chat page of envace serve, and a run's report.html, in headless
// Chromium, and fails at the first thing that is not as it should be.
// Usage: node page.mjs ENVACE MODEL REPORT PICTURES, where node finds the package
// playwright-core; pictures of what a person would see go into the folder PICTURES.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

// The package lies where PLAYWRIGHT says, or beside this file.
const find = createRequire(process.env.PLAYWRIGHT ? path.join(path.resolve(process.env.PLAYWRIGHT), "x.js") : import.meta.url);
const { chromium } = find("playwright-core");

const [envace, model, report, pictures] = process.argv.slice(2);
const wide = { width: 900, height: 800 }, narrow = { width: 360, height: 700 };
let checks = 0;
const check = (what, ok) => {
  checks++;
  assert.ok(ok, what);
};
const same = (what, got, want) => {
  checks++;
  assert.deepEqual(got, want, what);
};

const server = spawn(envace, ["serve", model, "--name", "peer", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "pipe", "inherit"] });
process.on("exit", () => server.kill("SIGKILL"));
let base = "";
for await (const line of createInterface({ input: server.stdout })) {
  base = line.replace(/^serving at /, "");
  break;
}

const profile = fs.mkdtempSync(path.join(os.tmpdir(), "page-"));
process.on("exit", () => fs.rmSync(profile, { recursive: true, force: true }));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM,
  viewport: wide,
  args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
browser.setDefaultTimeout(20_000);

// open opens a page and notes what it complains of and where it asks.
async function open(url) {
  const page = await browser.newPage();
  const seen = { complaints: [], asked: new Set() };
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && seen.complaints.push(m.text()));
  page.on("pageerror", (e) => seen.complaints.push(String(e)));
  page.on("request", (r) => seen.asked.add(new URL(r.url()).origin));
  await page.goto(url);
  return [page, seen];
}

// fits checks that nothing has to be scrolled sideways, and takes a picture.
async function fits(page, name, size, scheme = "light") {
  await page.setViewportSize(size);
  await page.emulateMedia({ colorScheme: scheme });
  check(`${name} fits its window`, await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
  await page.screenshot({ path: path.join(pictures, name + ".png"), fullPage: name.startsWith("report") });
}

// inSight checks that the last entry does not hide behind the box to write in.
async function inSight(page) {
  const [entry, form] = [await page.locator("#log > *:last-child").boundingBox(), await page.locator("#form").boundingBox()];
  check("the end is in sight", entry.y + entry.height <= form.y);
}

async function chat() {
  const [page, seen] = await open(base);
  const log = (kind) => page.locator(`#log .${kind} span`);
  const over = () => page.locator("#send:visible").waitFor();
  const say = async (text) => {
    await page.fill("#said", text);
    await page.press("#said", "Enter");
  };
  await page.locator("#model", { hasText: "peer" }).waitFor();

  // A chat: the answer comes in pieces.
  await page.evaluate(() => {
    window.lengths = [];
    new MutationObserver(() => {
      const length = document.querySelector("#log .assistant span")?.textContent.length ?? 0;
      if (length !== window.lengths.at(-1)) window.lengths.push(length);
    }).observe(document.getElementById("log"), { childList: true, subtree: true, characterData: true });
  });
  await say("hello");
  await log("assistant").first().waitFor();
  await over();
  same("what was said", await log("user").allTextContents(), ["hello"]);
  const lengths = await page.evaluate(() => window.lengths);
  check(`the answer grows: ${lengths}`, lengths.length > 3 && lengths.every((n, i) => i === 0 || n > lengths[i - 1]));
  await inSight(page);
  await fits(page, "chat", wide);

  // A call, its answer by hand, and the reply.
  const tool = { type: "function", function: { name: "get_order", description: "Look an order up.", parameters: { type: "object", properties: { order: { type: "string", maxLength: 8 } }, required: ["order"] } } };
  await page.click("#fresh");
  same("a new chat is empty", await page.locator("#log > *").count(), 0);
  await page.click("summary");
  await page.fill("#tools", JSON.stringify([tool], null, 1));
  await page.selectOption("#choice", "required");
  await fits(page, "settings", wide);
  await page.click("summary");
  await say("What is the status of order A17?");
  await log("call").first().waitFor();
  await over();
  same("a call is shown", await page.locator("#log .call b").first().textContent(), "calls get_order");
  same("its arguments", Object.keys(JSON.parse(await log("call").first().textContent())), ["order"]);
  const calls = await log("call").count();
  await page.evaluate(() => (document.getElementById("choice").value = "none")); // the reply shall be text
  for (let i = 0; i < calls; i++) {
    same("what is asked for", await page.textContent("#what"), "Result of get_order");
    await say('{"order":"A17","status":"shipped"}');
  }
  same("the results are shown", await log("result").count(), calls);
  await over();
  check("a reply is shown", (await log("assistant").last().textContent()) !== "" && (await log("call").count()) === calls);
  await fits(page, "calls", wide);
  await fits(page, "calls-dark", wide, "dark");
  await fits(page, "calls-narrow", narrow);
  await page.setViewportSize(wide);

  // An answer that is stopped by hand.
  await page.click("#fresh");
  await page.click("summary");
  await page.selectOption("#choice", "required");
  tool.function.parameters.properties.order = { type: "string", minLength: 5000 };
  await page.fill("#tools", JSON.stringify([tool]));
  await page.fill("#most", "900");
  await say("hello");
  await page.click("#stop");
  await over();
  same("a stopped call is not made", [await log("call").count(), await page.textContent("#what")], [0, "Message"]);
  same("what got no answer is back in its box", await page.inputValue("#said"), "hello");

  // A new chat in the midst of an answer knows nothing of the old one.
  await page.press("#said", "Enter");
  await page.locator("#stop:visible").waitFor();
  await page.click("#fresh");
  await over();
  const asked = page.waitForRequest((r) => r.url().endsWith("/completions"));
  await page.selectOption("#choice", "none");
  await page.fill("#most", "30");
  await say("afresh");
  same("what is sent", JSON.parse((await asked).postData()).messages, [{ role: "user", content: "afresh" }]);
  await over();
  await page.selectOption("#choice", "required");
  await page.fill("#most", "900");
  same("no complaints", seen.complaints, []);
  same("nobody else is asked", [...seen.asked], [base]);

  // Errors are told, and what was written is kept.
  await page.fill("#tools", "[{]");
  await say("first");
  await log("error").filter({ hasText: "the tools in the settings are not valid JSON" }).waitFor();
  await page.fill("#tools", "");
  await page.fill("#most", "100000");
  await say("second");
  await log("error").filter({ hasText: "max_tokens" }).waitFor();
  same("the message is back in its box", await page.inputValue("#said"), "second");
  await page.fill("#tools", JSON.stringify([tool]));
  await page.fill("#most", "900");
  const begun = page.waitForResponse((r) => r.url().endsWith("/completions"));
  await page.press("#said", "Enter");
  await begun; // the call takes seconds
  server.kill("SIGKILL");
  await once(server, "exit");
  await log("error").filter({ hasText: "the response was cut off" }).waitFor();
  await page.press("#said", "Enter");
  await log("error").filter({ hasText: "cannot reach the server" }).waitFor();
  await inSight(page);
  same("the message is still there", await page.inputValue("#said"), "second");
  await page.click("summary");
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
  await fits(page, "errors", wide);
  same("no complaints but of the network", seen.complaints.filter((c) => !c.startsWith("Failed to load resource")), []);
  await page.close();
}

async function readReport() {
  const [page, seen] = await open(pathToFileURL(report).href);
  const drawn = (list) => list.map((svg) => {
    const box = svg.getBoundingClientRect(), shapes = [...svg.querySelectorAll("path, circle, rect")];
    return box.width > 50 && box.height > 10 && shapes.some((s) => s.getBoundingClientRect().width > 1);
  });
  for (const [what, at] of [["charts", "svg.chart"], ["intervals", "td svg[role=img]"]]) {
    const plots = await page.locator(at).evaluateAll(drawn);
    check(`${what} are drawn: ${plots}`, plots.length > 0 && plots.every(Boolean));
  }
  await fits(page, "report", wide);
  await fits(page, "report-dark", wide, "dark");
  await fits(page, "report-narrow", narrow);
  same("no complaints", seen.complaints, []);
  same("nobody is asked", [...seen.asked], ["null"]);
  await page.close();
}

try {
  await chat();
  await readReport();
} finally {
  await browser.close();
}
console.log(`chromium: ${checks} checks of the pages passed`);
process.exit(0);
