"""Writes files.json: what transformers makes of tokenizers that several files
describe. Made with transformers 4.57.6 and tokenizers 0.22.2:

    python files.py
"""

import json
import os
import tempfile

os.environ["TRANSFORMERS_VERBOSITY"] = "critical"
from tokenizers.pre_tokenizers import ByteLevel
from transformers import PreTrainedTokenizerFast

VOCAB = {c: i for i, c in enumerate(sorted(ByteLevel.alphabet()))}
VOCAB |= {"he": 256, "</v>": 257}


def token(content, **flags):
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} | flags
    return {"content": content} | flags


def typed(content, **flags):
    return token(content, **flags) | {"__type": "AddedToken"}


def tokenizer(added, pre):
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True} | pre
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": i} | t for i, t in added],
        "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": VOCAB, "merges": ["h e"]},
    }


END, OBS = token("<|im_end|>"), token("<|obs|>")
DULL = token("<|im_end|>", special=False)
OUT = []


def case(name, added=((258, END),), config=None, special=None, extra=None, texts=("a <|obs|> b<|im_end|> he",), pre={}):
    files = {"tokenizer.json": tokenizer(added, pre)}
    if config is not None:
        files["tokenizer_config.json"] = {"tokenizer_class": "PreTrainedTokenizerFast"} | config
    if special is not None:
        files["special_tokens_map.json"] = special
    if extra is not None:
        files["added_tokens.json"] = extra
    row = {"name": name, "files": {n: json.dumps(f) for n, f in files.items()}}
    whole = dict(row["files"])
    # the test puts these into the tokenizer that they share
    row["files"]["tokenizer.json"] = json.dumps(files["tokenizer.json"]["added_tokens"])
    row["prefix_space"] = files["tokenizer.json"]["pre_tokenizer"]["add_prefix_space"]
    OUT.append(row)
    with tempfile.TemporaryDirectory() as d:
        for n, text in whole.items():
            with open(os.path.join(d, n), "w") as f:
                f.write(text)
        try:
            tok = PreTrainedTokenizerFast.from_pretrained(d)
        except Exception as e:
            row["error"] = type(e).__name__
            return
    row["tokens"] = {t.content: {"id": i, "special": t.special} for i, t in tok.added_tokens_decoder.items()}
    row["cases"] = []
    for text in texts:
        ids = tok.encode(text, add_special_tokens=False)
        row["cases"].append({
            "text": text, "ids": ids, "decoded": tok.decode(ids, clean_up_tokenization_spaces=False),
            "decoded_skip": tok.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)})


def decoder(**more):
    return {"added_tokens_decoder": {k.lstrip("_"): v for k, v in more.items()}}


case("tokenizer.json alone")
case("an empty configuration", config={})
case("decoder", config=decoder(_258=END, _259=OBS))
case("decoder with the new token only", config=decoder(_259=OBS))
case("decoder with a gap", config=decoder(_300=OBS))
case("decoder in no order", config=decoder(_262=token("<|a|>"), _260=OBS, _9=token("<|b|>")), texts=("<|a|><|obs|><|b|>",))
case("decoder with the id of another", config=decoder(_258=OBS))
case("decoder with two of one text", config=decoder(_259=OBS, _260=token("<|obs|>", lstrip=True)))
case("decoder with an empty text", config=decoder(_259=token("")))
case("decoder with an unknown flag", config=decoder(_259=OBS | {"other": 1}))
case("decoder with a token of the vocabulary", config=decoder(_256=token("he")))
case("decoder without flags", config=decoder(_258={"content": "<|im_end|>"}, _259={"content": "<|obs|>"}))
case("decoder without flags but with a role", config=decoder(_259={"content": "<|obs|>"}) | {"eos_token": "<|obs|>"})
case("decoder with ordinary tokens", config=decoder(_259=token("<|a|>"), _260=token("<|obs|>", special=False)))
case("empty decoder", config=decoder(), extra={"<|obs|>": 259})
case("decoder that is null", config={"added_tokens_decoder": None})
case("decoder of texts", config=decoder(_259="<|obs|>"))
case("decoder without ids", config=decoder(x=OBS))
case("special in the configuration only", added=[(258, DULL)], config=decoder(_258=END))
case("special in tokenizer.json only", config=decoder(_258=DULL))
case("special by its role, in neither file", added=[(258, DULL)], config=decoder(_258=DULL) | {"eos_token": "<|im_end|>"})
case("special in tokenizer.json and by its role", config=decoder(_258=DULL) | {"eos_token": "<|im_end|>"})
case("role of a token of tokenizer.json", added=[(258, DULL)], config={"eos_token": "<|im_end|>"})
case("role outside the decoder", added=[(258, DULL)], config=decoder(_259=OBS) | {"eos_token": "<|im_end|>"})
case("role outside the decoder, described", added=[(258, DULL)], config=decoder(_259=OBS) | {"eos_token": typed("<|im_end|>")})
case("lstrip in the configuration only", config=decoder(_258=token("<|im_end|>", lstrip=True)), texts=("a <|im_end|> b",))
case("lstrip in tokenizer.json only", added=[(258, token("<|im_end|>", lstrip=True))], config=decoder(_258=END), texts=("a <|im_end|> b",))
case("rstrip in the configuration only", config=decoder(_258=token("<|im_end|>", rstrip=True)), texts=("a <|im_end|> b",))
case("single_word in the configuration only", config=decoder(_258=token("<|im_end|>", single_word=True)), texts=("a<|im_end|>b", "a <|im_end|> b"))
case("normalized in the configuration only", config=decoder(_258=token("<|im_end|>", normalized=True)))
case("additional", config={"additional_special_tokens": ["<|obs|>"]})
case("additional, described", config={"additional_special_tokens": [typed("<|obs|>", lstrip=True)]})
case("additional, null", config={"additional_special_tokens": None})
case("additional, twice", config={"additional_special_tokens": ["<|obs|>", "<|obs|>", "<|im_end|>"]})
case("additional of an ordinary token", added=[(258, DULL)], config={"additional_special_tokens": ["<|im_end|>"]})
case("additional of an ordinary token of the decoder", config=decoder(_259=token("<|obs|>", special=False)) | {"additional_special_tokens": ["<|obs|>"]})
case("additional that is no list", config={"additional_special_tokens": 7})
case("extra", config={"extra_special_tokens": {"obs_token": "<|obs|>"}})
case("extra, described", config={"extra_special_tokens": {"obs_token": typed("<|obs|>", rstrip=True)}})
case("extra, in order", config={"extra_special_tokens": {"z_token": "<z>", "a_token": "<a>"}}, texts=("<z><a>",))
case("extra, empty", config={"extra_special_tokens": {}})
case("a role of its own", config={"obs_token": "<|obs|>"})
case("end", config={"eos_token": "<|obs|>"})
case("end in the vocabulary", config={"eos_token": "</v>"}, texts=("a</v>b",))
case("end, null", config={"eos_token": None})
case("all roles", config={k: f"<{k}>" for k in ("sep_token", "cls_token", "mask_token", "pad_token", "unk_token", "bos_token", "eos_token")},
     texts=("<sep_token><cls_token><mask_token><pad_token><unk_token><bos_token><eos_token>",))
case("added_tokens.json", extra={"<|obs|>": 259})
case("added_tokens.json with a gap", config={}, extra={"<|obs|>": 300})
case("added_tokens.json in no order", config={}, extra={"<|b|>": 261, "<|a|>": 260, "<|obs|>": 259}, texts=("<|a|><|b|><|obs|>",))
case("added_tokens.json with an id of tokenizer.json", config={}, extra={"<|obs|>": 258})
case("added_tokens.json and additional", config={"additional_special_tokens": ["<|obs|>"]}, extra={"<|obs|>": 259})
case("added_tokens.json and the map", special={"additional_special_tokens": ["<|obs|>"]}, extra={"<|obs|>": 259})
case("added_tokens.json beside a decoder", config=decoder(_258=END), extra={"<|obs|>": 259})
case("map", special={"additional_special_tokens": ["<|obs|>"]})
case("map and configuration", config={"additional_special_tokens": ["<|c|>"]}, special={"additional_special_tokens": ["<|obs|>", "<|c|>"]}, texts=("<|c|><|obs|>",))
case("map with a description", special={"eos_token": token("<|obs|>", lstrip=True)})
case("map against the configuration", config={"eos_token": "<|im_end|>"}, special={"eos_token": "<|obs|>"})
case("map with null against the configuration", config={"eos_token": "<|obs|>"}, special={"eos_token": None})
case("map beside a decoder", config=decoder(_258=END) | {"eos_token": "<|im_end|>"},
     special={"eos_token": "<|obs|>", "additional_special_tokens": ["<|q|>"]}, texts=("<|obs|><|q|>",))
case("map with other flags than tokenizer.json", special={"eos_token": token("<|im_end|>", lstrip=True, special=False)}, texts=("a <|im_end|>",))
case("prefix space in tokenizer.json only", pre={"add_prefix_space": True}, config={}, texts=("he",))
with open("files.json", "w") as f:
    json.dump({"tokenizer": json.dumps(tokenizer([], {})), "rows": OUT}, f, indent=1)
    f.write("\n")
