// Drives a server by the official JavaScript SDK, and fails at the first mismatch.
// Usage: node openai_sdk.mjs BASE_URL MODEL, where node finds the package openai.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

// The package lies where OPENAI_SDK says, or beside this file.
const find = createRequire(process.env.OPENAI_SDK ? path.join(path.resolve(process.env.OPENAI_SDK), "x.js") : import.meta.url);
const { default: OpenAI } = await import(pathToFileURL(find.resolve("openai")).href);

const [base, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL: base, apiKey: "none", maxRetries: 0, timeout: 120_000 });
const messages = [{ role: "user", content: "What is the status of order A17?" }];
const tools = [{ type: "function", function: { name: "get_order", parameters: { type: "object", properties: { order: { type: "string", maxLength: 8 } }, required: ["order"] } } }];
let checks = 0;
const same = (what, got, want) => {
  checks++;
  assert.deepEqual(got, want, what);
};

const ask = (more) => ({ model, messages, seed: 7, max_tokens: 48, temperature: 0, ...more });
const flat = (m, finish) => ({ content: m.content || null, calls: (m.tool_calls ?? []).map((c) => [c.id, c.function.name, c.function.arguments]), finish });

// The SDK itself joins the stream.
async function streams(what, more) {
  const whole = await client.chat.completions.create(ask(more));
  const joined = await client.chat.completions.stream(ask(more)).finalChatCompletion();
  for (const [i, c] of whole.choices.entries()) {
    same(`${what}, choice ${i}`, flat(joined.choices[i].message, joined.choices[i].finish_reason), flat(c.message, c.finish_reason));
  }
  return whole;
}

same("models", (await client.models.list()).data.map((m) => m.id), [model]);
await streams("text", {});
await streams("several answers", { n: 2, temperature: 0.8 });
await streams("stop", { stop: "e" });
await streams("tools", { tools });
await streams("logprobs", { logprobs: true, top_logprobs: 2 });
const forced = await streams("forced call", { tools, tool_choice: "required", parallel_tool_calls: false, max_tokens: 200 });
same("its name", forced.choices[0].message.tool_calls[0].function.name, "get_order");
same("its arguments", Object.keys(JSON.parse(forced.choices[0].message.tool_calls[0].function.arguments)), ["order"]);
const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"], additionalProperties: false };
const formed = await streams("JSON schema", { response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict: true } } });
same("its keys", Object.keys(JSON.parse(formed.choices[0].message.content)), ["ok"]);

let text = "";
for await (const part of await client.completions.create({ model, prompt: "Order A17", max_tokens: 8, temperature: 0, stream: true })) text += part.choices[0].text;
same("completion", text, (await client.completions.create({ model, prompt: "Order A17", max_tokens: 8, temperature: 0 })).choices[0].text);

for (const [what, status, param, call] of [
  ["unknown model", 404, "model", () => client.chat.completions.create({ ...ask(), model: "x" })],
  ["unsupported field", 400, "reasoning_effort", () => client.chat.completions.create(ask({ reasoning_effort: "low" }))],
  ["embeddings", 400, null, () => client.embeddings.create({ model, input: "x" })],
]) {
  const error = await call().then(() => null, (e) => e);
  same(what, [error?.status, error?.error?.param], [status, param]);
}

// A client that stops reading is no fault.
const broken = await client.chat.completions.create(ask({ stream: true, max_tokens: 400 }));
for await (const _ of broken) break;
same("health", (await fetch(new URL("/health", base))).status, 200);
console.log(`openai-node: ${checks} checks passed`);
