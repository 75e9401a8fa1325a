"""Writes small.json: small tokenizers of every kind the package knows, and what
tokenizers 0.22.2 makes of random texts with them.

    pip install tokenizers==0.22.2 && python small.py
"""
import json
import random

from tokenizers import AddedToken, Tokenizer

random.seed(1)
PIECES = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|%s| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
WORDS = "[\\p{L}\\p{M}]+|\\p{N}{1,2}|[^\\p{L}\\p{M}\\p{N}]+"


def split(regex, behavior="Isolated", invert=False):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": behavior, "invert": invert}


def digits(individual):
    return {"type": "Digits", "individual_digits": individual}


def level(regex=False):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": regex}


def alphabet():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in keep]
    return {**{b: chr(b) for b in keep}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


BYTES = alphabet()
NAMES = ["<a>", "<a", "<a>b", "foo", "é", "e\u0301x", "  sp", "bar baz", "Å", "the", "ſ", "_"]
RARE = [0x1C89, 0xA7CB, 0x10D40, 0x10D70, 0x11380, 0x113B8, 0x116D0, 0x11DE0, 0x16FF4, 0x1E5F1, 0x0897,
        0x07FD, 0x11938, 0x11935, 0x11930, 0x1E2EC, 0x0301, 0x0323, 0x1100, 0x1161, 0x11A8, 0x0344, 0x212B]


def character():
    k = random.random()
    if k < 0.3:
        return random.choice(" \n\r\t'\u00a0\u3000\u0085\x0b\x1c\u200b\x00")
    if k < 0.75:
        return random.choice("thetheabcdsrvlmDTſ'0129_.,<>|é٣Ⅷ²")
    if k < 0.9:
        return chr(random.choice(RARE))
    while True:
        c = random.choice([random.randint(0, 0x3300), random.randint(0, 0x10FFFF)])
        if not 0xD800 <= c <= 0xDFFF:
            return chr(c)


def text():
    return "".join(
        random.choice(NAMES) if random.random() < 0.2 else character() * random.choice([1, 1, 1, 2, 4])
        for _ in range(random.randint(1, 16)))


def model(**kw):
    lack = kw.pop("lack", [])
    tokens = [c for b, c in sorted(BYTES.items()) if b not in lack]
    merges = [["t", "h"], ["th", "e"], ["Ġ", "the"], ["Ġ", "Ġ"], ["a", "b"], ["ab", "ab"], ["e", "Ì"], ["'", "s"], ["1", "2"], ["Ċ", "Ċ"]]
    merges = [m for m in merges if all(x in tokens or len(x) > 1 for x in m)]
    tokens += [a + b for a, b in merges] + ["hello", "Ġcd", "[UNK]"]
    return {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, **kw,
            "vocab": {t: i for i, t in enumerate(tokens)}, "merges": merges}


KINDS = [
    ("qwen", {"type": "NFC"}, [split(PIECES % "\\p{N}"), level()], {}),
    ("llama", None, [split(PIECES % "\\p{N}{1,3}"), level()], {"ignore_merges": True}),
    ("smollm", None, [digits(True), level(True)], {"lack": [0, 9, 0xC3, 0xF0]}),
    ("gpt2", {"type": "Sequence", "normalizers": [{"type": "NFC"}]}, [level(True)], {"lack": [0xCC, 0x27], "unk_token": "[UNK]"}),
    ("gpt2 removed", None, [split(GPT2, "Removed", True), level()], {"lack": [0xCC, 0x27, 0xE2], "unk_token": "[UNK]", "fuse_unk": True}),
    ("digit runs", None, [digits(False), level(True)], {}),
    ("words", None, [split(WORDS), level()], {}),
    ("whole", {"type": "NFC"}, [level()], {}),
]
out = []
for name, normalizer, pre, kw in KINDS:
    t = Tokenizer.from_str(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": normalizer,
        "pre_tokenizer": pre[0] if len(pre) == 1 else {"type": "Sequence", "pretokenizers": pre},
        "post_processor": None, "decoder": level(True), "model": model(**kw)}))
    for content in random.sample(NAMES, 8):
        t.add_tokens([AddedToken(content, **{k: random.random() < 0.4 for k in
                                             ("single_word", "lstrip", "rstrip", "normalized", "special")})])
    cases = []
    for _ in range(50):
        s = text()
        ids = t.encode(s, add_special_tokens=False).ids
        cases.append({"text": s, "ids": ids, "decoded": t.decode(ids, skip_special_tokens=False),
                      "decoded_skip": t.decode(ids, skip_special_tokens=True)})
    out.append({"name": name, "file": json.loads(t.to_str()), "cases": cases})

with open("small.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(o, separators=(",", ":")) for o in out) + "\n]\n")
