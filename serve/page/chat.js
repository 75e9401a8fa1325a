"use strict";
// A plain chat: streams answers, shows calls, and asks for what each tool answers.
const $ = (id) => document.getElementById(id);
let messages = [];
let open = []; // calls that have no result yet
let model = "";
let busy = null; // of the answer under way
let before = null; // what was so before the last message was sent

function entry(kind, who, text) {
  const p = document.createElement("p");
  p.className = "entry " + kind;
  const label = document.createElement("b");
  label.textContent = who;
  const body = document.createElement("span");
  body.textContent = text;
  p.append(label, body);
  $("log").append(p);
  scrollTo(0, document.documentElement.scrollHeight);
  return body;
}

// grow adds text, and keeps the end in sight for whoever is there.
function grow(body, text) {
  const root = document.documentElement, follow = scrollY + innerHeight > root.scrollHeight - 50;
  body.textContent += text;
  if (follow) scrollTo(0, root.scrollHeight);
}

function headers() {
  const h = { "Content-Type": "application/json" };
  if ($("key").value) h.Authorization = "Bearer " + $("key").value;
  return h;
}

async function refusal(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return response.status + " " + response.statusText;
  }
}

async function findModel() {
  const response = await reach("v1/models", { headers: headers() });
  model = (await response.json()).data[0].id;
  $("model").textContent = model;
}

// reach fetches, and says what it means when that does not work.
async function reach(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("the server cannot be reached: does it still run?");
  }
  if (!response.ok) throw new Error(await refusal(response));
  return response;
}

function tools() {
  try {
    return JSON.parse($("tools").value);
  } catch (error) {
    throw new Error("the tools in the settings are not JSON: " + error.message);
  }
}

function request() {
  const body = { model, messages, stream: true, temperature: Number($("temperature").value), max_tokens: Number($("most").value) };
  if ($("system").value) body.messages = [{ role: "system", content: $("system").value }, ...messages];
  if ($("tools").value.trim()) {
    body.tools = tools();
    // Once a tool has answered, the model may speak: it would call for ever.
    body.tool_choice = messages.at(-1).role === "user" || $("choice").value === "none" ? $("choice").value : "auto";
  }
  return body;
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      if (error.name === "AbortError") throw error;
      return { done: true };
    });
    if (done) throw new Error("the answer was cut off: the connection to the server broke");
    held += value;
    const parts = held.split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      const data = part.replace(/^data: /, "");
      if (data === "[DONE]") return;
      yield JSON.parse(data);
    }
  }
}

// Shown is the answer as it comes.
class Shown {
  constructor() {
    this.message = { role: "assistant", content: "", tool_calls: [] };
    this.spans = {};
  }
  more(kind, who, text) {
    this.spans[kind] ??= entry(kind, who, "");
    grow(this.spans[kind], text);
  }
  add(delta) {
    if (delta.reasoning_content) {
      this.message.reasoning_content = (this.message.reasoning_content ?? "") + delta.reasoning_content;
      this.more("thinking", "thinking", delta.reasoning_content);
    }
    if (delta.content) {
      this.message.content += delta.content;
      this.more("assistant", model, delta.content);
    }
    for (const call of delta.tool_calls ?? []) {
      this.message.tool_calls[call.index] = { id: call.id, type: "function", function: call.function };
      entry("call", "calls " + call.function.name, call.function.arguments);
    }
  }
}

async function answer() {
  busy = new AbortController();
  $("send").hidden = true;
  $("stop").hidden = false;
  const shown = new Shown(), mine = messages;
  let finish = "stopped", failed = false;
  try {
    if (!model) await findModel();
    const response = await reach("v1/chat/completions", { method: "POST", headers: headers(), body: JSON.stringify(request()), signal: busy.signal });
    for await (const event of events(response)) {
      if (event.error) throw new Error(event.error.message);
      for (const choice of event.choices) {
        shown.add(choice.delta);
        finish = choice.finish_reason ?? finish;
      }
    }
  } catch (error) {
    if (error.name !== "AbortError") {
      entry("error", "error", error.message);
      failed = true;
    }
  }
  if (messages === mine) keep(shown.message, finish, failed); // else there is a new chat
  if (finish === "length") entry("error", "cut", "the answer came to its limit of tokens");
  busy = null;
  $("send").hidden = false;
  $("stop").hidden = true;
  ask();
}

// keep goes on with the answer, or with what was before it where there is none.
function keep(message, finish, failed) {
  if (finish !== "tool_calls") message.tool_calls = [];
  if (failed || (finish === "stopped" && !message.content)) return takeBack();
  open = [...message.tool_calls];
  if (!open.length) delete message.tool_calls;
  if (message.content || open.length) messages.push(message);
}

// takeBack undoes the last message, so that it can be mended and sent again.
function takeBack() {
  messages = before.messages;
  open = before.open;
  if (!$("said").value) $("said").value = before.text;
}

function ask() {
  $("what").textContent = open.length ? "What does " + open[0].function.name + " answer?" : "Message";
  $("said").focus();
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (busy) return;
  const text = $("said").value;
  $("said").value = "";
  before = { messages: [...messages], open: [...open], text };
  if (open.length) {
    const call = open.shift();
    messages.push({ role: "tool", tool_call_id: call.id, content: text });
    entry("result", call.function.name + " answers", text);
    if (open.length) return ask();
  } else {
    messages.push({ role: "user", content: text });
    entry("user", "you", text);
  }
  answer();
});

$("said").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    $("form").requestSubmit();
  }
});

$("stop").addEventListener("click", () => busy?.abort());
$("fresh").addEventListener("click", () => {
  busy?.abort();
  messages = [];
  open = [];
  $("log").replaceChildren();
  ask();
});

findModel().catch((error) => entry("error", "error", error.message));
