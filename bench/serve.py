"""Serving, ours against llama.cpp's server of llama-cpp-python: several clients at
once, whose prompts share a beginning of 1k tokens, which each round has anew.

Usage: serve.py ENVACE GGUF [--float32 FILE]. Both serve GGUF, each in the precision
that it computes in; with --float32, the peer has another turn with the same numbers
as float32. Every answer is a stream of raw text at temperature 0.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import sides

WORDS = """time year people way day man thing woman life child world school state family student group country problem
hand part place case week company system program question work government number night point home water room mother
area money story fact month lot right study book eye job word business issue side kind head house service friend""".split()


def options():
    p = argparse.ArgumentParser()
    p.add_argument("envace")
    p.add_argument("gguf")
    p.add_argument("--float32")
    p.add_argument("--clients", default="1,8,32")
    p.add_argument("--prompt", type=int, default=1000, help="words in common, of about a token each")
    p.add_argument("--tail", type=int, default=16, help="words of a client's own")
    p.add_argument("--tokens", type=int, default=32)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    return p.parse_args()


class Server:
    """A server in a process of its own. more is added to each request."""

    def __init__(self, name, command, ready, more):
        self.name, self.more, self.log = name, more, tempfile.NamedTemporaryFile("w")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT)
        while not (at := self.printed(ready)):
            if self.process.poll() is not None:
                raise SystemExit(f"{name} did not start: {self.printed('(?s).*').group()}")
            time.sleep(0.1)
        self.address = urllib.parse.urlparse(at.group(1)).netloc

    def printed(self, pattern):
        with open(self.log.name) as f:
            return re.search(pattern, f.read())

    def ask(self, prompt, tokens, stream):
        connection = http.client.HTTPConnection(self.address, timeout=600)
        body = {"model": "m", "prompt": prompt, "max_tokens": tokens, "temperature": 0, "stream": stream, **self.more}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{self.name}: {answer.status} {answer.read().decode()}")
        return answer

    def whole(self, prompt, tokens):
        """The text of an answer, and the tokens of its prompt and of itself."""
        body = json.loads(self.ask(prompt, tokens, False).read())
        return body["choices"][0]["text"], body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"]

    def stream(self, prompt, tokens):
        """When the first text of an answer came, how many tokens came, and the text."""
        first, text, count, reason = None, "", 0, None
        for line in self.ask(prompt, tokens, True):
            if not line.startswith(b"data: {"):
                continue
            choice = json.loads(line[6:])["choices"][0]
            if choice["text"]:
                first, count, text = first or time.perf_counter(), count + 1, text + choice["text"]
            reason = choice["finish_reason"] or reason
        if reason is None or first is None:
            raise RuntimeError(f"{self.name}: a stream was cut off")
        return first, tokens if reason == "length" else count, text

    def memory(self):
        """The most memory that the process had, in MB."""
        with open(f"/proc/{self.process.pid}/status") as f:
            return next(int(line.split()[1]) / 1000 for line in f if line.startswith("VmHWM"))

    def close(self):
        self.process.terminate()
        self.process.wait()


def ours(o):
    command = [o.envace, "serve", o.gguf, "--name", "m", "--listen", "127.0.0.1:0", "--threads", str(o.threads)]
    return Server("envace", command, r"serving at (http://\S+)", {})


def peer(o, path, kind):
    # No penalty on repetition, and no logits but those that are needed; a request does not interrupt a stream.
    command = [sys.executable, os.path.join(os.path.dirname(__file__), "llamaserver.py"), o.gguf, "--model", path, "--host", "127.0.0.1", "--port", "0",
               "--n_ctx", str(o.prompt * 2 + o.tail * 2 + o.tokens), "--n_threads", str(o.threads), "--n_threads_batch", str(o.threads),
               "--logits_all", "false", "--interrupt_requests", "false", "--verbose", "false"]
    return Server("llama.cpp, " + kind, command, r"running on (http://\S+)", {"repeat_penalty": 1.0})


def words(draw, n):
    return " ".join(draw.choice(WORDS) for _ in range(n))


def prompts(o, seed, clients):
    """Prompts with a beginning in common that no other seed has."""
    draw = random.Random(seed)
    head = words(draw, o.prompt)
    return [f"{head} {words(draw, o.tail)}" for _ in range(clients)]


def round_of(server, texts, tokens):
    """All clients at once: seconds to the end, to the first token of each, tokens, and texts."""
    results, gate = [None] * len(texts), threading.Barrier(len(texts) + 1)

    def client(i):
        gate.wait()
        with contextlib.suppress(RuntimeError, OSError):
            results[i] = server.stream(texts[i], tokens)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(len(texts))]
    for t in threads:
        t.start()
    gate.wait()
    start = time.perf_counter()
    for t in threads:
        t.join()
    seconds = time.perf_counter() - start
    if None in results:
        raise SystemExit(f"{server.name}: {results.count(None)} of {len(texts)} clients got no answer")
    return seconds, [first - start for first, _, _ in results], sum(n for _, n, _ in results), [text for _, _, text in results]


HEAD = """
| clients | peer | time to first token, ours (slowest client) | peer | tokens per second, ours | peer | speed-up | range |
| --- | --- | --- | --- | --- | --- | --- | --- |"""


def compare(o, ours, other):
    text = prompts(o, -1, 1)[0]
    a, b = (s.whole(text, o.tokens) for s in (ours, other))  # also to warm up
    if a[1] != b[1]:
        raise SystemExit(f"no ratio: the prompt has {a[1]} tokens for us and {b[1]} for {other.name}")
    print(f"\n{other.name}: prompts of about {a[1]} tokens, of which {o.prompt} words in common; answers of {o.tokens}", flush=True)
    print(HEAD, flush=True)
    equal = total = 0
    for clients in map(int, o.clients.split(",")):
        got = {ours: [], other: []}
        for i in range(o.rounds):
            texts = prompts(o, clients * 1000 + i, clients)
            for s in (ours, other) if i % 2 == 0 else (other, ours):
                got[s].append(round_of(s, texts, o.tokens))
            equal += sum(a == b for a, b in zip(got[ours][-1][3], got[other][-1][3]))
            total += clients
        row(clients, other, got[ours], got[other])
    print(f"\nequal texts: {equal} of {total}; most memory: {ours.memory():.0f} MB ours, {other.memory():.0f} MB {other.name}", flush=True)


def row(clients, other, a, b):
    def waits(rounds):
        return f"{statistics.median(f for r in rounds for f in r[1]):.2f} s ({statistics.median(max(r[1]) for r in rounds):.2f})"

    speed = [[r[2] / r[0] for r in rounds] for rounds in (a, b)]
    ratios = [x / y for x, y in zip(*speed)]
    print(f"| {clients} | {other.name} | {waits(a)} | {waits(b)} | {statistics.median(speed[0]):.1f} | {statistics.median(speed[1]):.1f} "
          f"| {statistics.median(ratios):.2f} | {min(ratios):.2f}–{max(ratios):.2f} |", flush=True)


def main():
    o = options()
    print(f"serving: {sides.machine()}; {o.threads} threads on each side; envace computes in float32", flush=True)
    mine = ours(o)
    try:
        for path, kind in [(o.gguf, "the file's own format")] + ([(o.float32, "float32")] if o.float32 else []):
            other = peer(o, path, kind)
            try:
                print(f"\n{(off := other.printed('llama.cpp.s kernels.*')) and off.group() or ''}", flush=True)
                compare(o, mine, other)
            finally:
                other.close()
    finally:
        mine.close()


if __name__ == "__main__":
    main()
