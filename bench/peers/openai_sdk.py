"""Drives a server by the official Python SDK, and fails at the first mismatch.

Usage: openai_sdk.py BASE_URL MODEL   (for example http://127.0.0.1:8080/v1 base)
"""

import json
import sys

import openai

base, model = sys.argv[1:3]
client = openai.OpenAI(base_url=base, api_key="none", max_retries=0, timeout=120)
hi = [{"role": "user", "content": "What is the status of order A17?"}]
tools = [
    {
        "type": "function",
        "function": {
            "name": "get_order",
            "description": "Look an order up.",
            "parameters": {
                "type": "object",
                "properties": {"order": {"type": "string", "maxLength": 8}, "year": {"enum": [2025, 2026]}},
                "required": ["order", "year"],
            },
        },
    }
]
schema = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 2}},
    "required": ["ok", "tags"],
    "additionalProperties": False,
}
checks = 0


def same(what, got, want):
    global checks
    checks += 1
    if got != want:
        sys.exit(f"openai-python: {what}: got {got!r}, want {want!r}")


def chat(**more):
    return client.chat.completions.create(model=model, messages=hi, seed=7, **{"max_tokens": 48, "temperature": 0} | more)


def merge(stream):
    """Joins chunks as the protocol says: by choice and by index of call."""
    out, usage = {}, None
    for chunk in stream:
        usage = chunk.usage or usage
        for c in chunk.choices:
            m = out.setdefault(c.index, {"content": "", "thinking": "", "calls": {}, "finish": None, "tokens": [], "logprobs": []})
            m["content"] += c.delta.content or ""
            m["thinking"] += getattr(c.delta, "reasoning_content", None) or ""
            m["tokens"] += getattr(c, "token_ids", None) or []
            m["logprobs"] += [t.logprob for t in (c.logprobs.content if c.logprobs else None) or []]
            for t in c.delta.tool_calls or []:
                call = m["calls"].setdefault(t.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += t.id or ""
                call["name"] += t.function.name or ""
                call["arguments"] += t.function.arguments or ""
            m["finish"] = c.finish_reason or m["finish"]
    return out, usage


def flat(answer):
    out = {}
    for c in answer.choices:
        calls = {i: {"id": t.id, "name": t.function.name, "arguments": t.function.arguments} for i, t in enumerate(c.message.tool_calls or [])}
        out[c.index] = {
            "content": c.message.content or "",
            "thinking": getattr(c.message, "reasoning_content", None) or "",
            "calls": calls,
            "finish": c.finish_reason,
            "tokens": getattr(c, "token_ids", None) or [],
            "logprobs": [t.logprob for t in (c.logprobs.content if c.logprobs else None) or []],
        }
    return out


def streams(what, **more):
    whole = chat(**more)
    got, usage = merge(chat(stream=True, stream_options={"include_usage": True}, **more))
    same(what + ", streamed", got, flat(whole))
    same(what + ", usage", usage, whole.usage)
    return whole


same("models", [m.id for m in client.models.list()], [model])
same("one model", client.models.retrieve(model).id, model)

streams("text")
streams("several answers", n=3, temperature=0.8)
streams("stop", stop=["e", "is"])
streams("tools", tools=tools)
whole = streams("logprobs", logprobs=True, top_logprobs=3, extra_body={"return_token_ids": True})
tokens = whole.choices[0].logprobs.content
same("alternatives", {len(t.top_logprobs) for t in tokens}, {3} if tokens else set())
same("the likeliest was taken", [t.logprob for t in tokens], [t.top_logprobs[0].logprob for t in tokens])

for choice in ["required", {"type": "function", "function": {"name": "get_order"}}]:
    forced = streams(f"tool_choice {choice}", tools=tools, tool_choice=choice, parallel_tool_calls=False, max_tokens=200)
    call = forced.choices[0].message.tool_calls[0]
    same("forced call", (call.function.name, sorted(json.loads(call.function.arguments))), ("get_order", ["order", "year"]))
    same("finish", forced.choices[0].finish_reason, "tool_calls")
    # The answer goes back as the SDK dumps it, nulls and all.
    more = [forced.choices[0].message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": [{"type": "text", "text": "sent"}]}]
    client.chat.completions.create(model=model, messages=hi + more, tools=tools, max_tokens=8)
same("no tools", chat(tools=tools, tool_choice="none").choices[0].message.tool_calls, None)

form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
value = json.loads(streams("JSON schema", response_format=form, max_tokens=200).choices[0].message.content)
same("keys", sorted(value), ["ok", "tags"])

completion = client.completions.create(model=model, prompt="Order A17", max_tokens=8, temperature=0, logprobs=2)
text = "".join(c.choices[0].text for c in client.completions.create(model=model, prompt="Order A17", max_tokens=8, temperature=0, stream=True))
same("completion, streamed", text, completion.choices[0].text)
scored = client.completions.create(model=model, prompt="Order A17", max_tokens=0, echo=True, logprobs=0)
same("echo", (scored.choices[0].text, scored.choices[0].logprobs.token_logprobs[0]), ("Order A17", None))


def fails(what, kind, param, call):
    try:
        call()
    except kind as e:
        same(what, (type(e.body.get("message")), e.body.get("param")), (str, param))
        return
    sys.exit(f"openai-python: {what}: no error")


fails("unknown model", openai.NotFoundError, "model", lambda: client.chat.completions.create(model="x", messages=hi))
fails("unsupported field", openai.BadRequestError, "reasoning_effort", lambda: chat(reasoning_effort="low"))
fails("beyond the window", openai.BadRequestError, "max_tokens", lambda: chat(max_tokens=10**6))
fails("schema", openai.BadRequestError, "response_format", lambda: chat(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}}))
fails("embeddings", openai.BadRequestError, None, lambda: client.embeddings.create(model=model, input="x"))
print(f"openai-python {openai.__version__}: {checks} checks passed")
