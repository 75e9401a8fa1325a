"use strict";
// A simple chat: streams responses, shows tool calls, and asks the user for their results.
const $ = (id) => document.getElementById(id);
let messages = [];
let open = []; // calls without a result
let model = "";
let busy = null; // AbortController of the request in progress
let before = null; // state before the last message was sent

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

// grow appends text, and scrolls along if the end is in view.
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

// reach is fetch with readable errors.
async function reach(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("cannot reach the server: is it running?");
  }
  if (!response.ok) throw new Error(await refusal(response));
  return response;
}

// tools returns the tools as they were typed: parsing them would round large integers.
function tools() {
  const typed = $("tools").value;
  try {
    JSON.parse(typed);
  } catch (error) {
    throw new Error("the tools in the settings are not valid JSON: " + error.message);
  }
  return typed;
}

// request returns the body of a request.
function request() {
  const body = { model, messages, stream: true, temperature: Number($("temperature").value), max_tokens: Number($("most").value) };
  if ($("system").value) body.messages = [{ role: "system", content: $("system").value }, ...messages];
  if (!$("tools").value.trim()) return JSON.stringify(body);
  // After a tool result the model may reply: it would call tools forever.
  body.tool_choice = messages.at(-1).role === "user" || $("choice").value === "none" ? $("choice").value : "auto";
  return JSON.stringify(body).slice(0, -1) + ',"tools":' + tools() + "}";
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      if (error.name === "AbortError") throw error;
      return { done: true };
    });
    if (done) throw new Error("the response was cut off: the connection to the server was lost");
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

// Shown is the response as it arrives.
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
    const response = await reach("v1/chat/completions", { method: "POST", headers: headers(), body: request(), signal: busy.signal });
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
  if (finish === "length") entry("error", "truncated", "token limit reached");
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
  $("what").textContent = open.length ? "Result of " + open[0].function.name : "Message";
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
    entry("result", "result of " + call.function.name, text);
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
