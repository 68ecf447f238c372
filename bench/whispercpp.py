"""Whisper by whisper.cpp, as a peer: the same weights, carried from CTranslate2's file to its own.

Its library lives in an environment of its own (``pip install pywhispercpp``), whose Python
``SYNORAMA_WHISPERCPP_PYTHON`` names.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from bench.spoken import Said

PYTHON_ENVIRONMENT = "SYNORAMA_WHISPERCPP_PYTHON"
MAGIC = 0x67676D6C
KINDS = (np.float32, np.int8, np.int16, np.int32, np.float16)
WORKER = """
import json, resource, sys
import numpy as np
from pywhispercpp.model import Model
model = Model(sys.argv[1], n_threads=1, print_progress=False, print_realtime=False,
              redirect_whispercpp_logs_to=None, params_sampling_strategy=1,
              beam_search={"beam_size": 5, "patience": -1.0})
said = []
for path in sys.argv[2:]:
    samples = np.load(path)
    said.append(" ".join(s.text.strip() for s in model.transcribe(samples, language="en")))
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([said, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6]))
"""

Tensors = dict[str, NDArray[Any]]


def recognize(model: Path, speech: Sequence[Said]) -> tuple[list[str], float, float] | None:
    """Return texts, CPU seconds and peak memory [MB]; None where whisper.cpp is not installed.

    Parameters
    ----------
    model
        Folder of an English model in CTranslate2's format, in half precision.
    """
    python = os.environ.get(PYTHON_ENVIRONMENT)
    if not python:
        return None
    with tempfile.TemporaryDirectory() as made:
        _carry_over(model, Path(made) / "ggml.bin")
        paths = []
        for k, said in enumerate(speech):
            paths.append(Path(made) / f"{k}.npy")
            np.save(paths[-1], said.samples.astype(np.float32) / 32_768)
        command = [python, "-c", WORKER, f"{made}/ggml.bin", *map(str, paths)]
        told = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    texts, cpu_s, peak_mb = json.loads(told.splitlines()[-1])
    return texts, cpu_s, peak_mb


# --- weights ----------------------------------------------------------------------------------


def _read(path: Path) -> Tensors:
    """Read CTranslate2's file: a header, then tensors, each with name, shape, kind and bytes."""
    with path.open("rb") as file:
        _number(file)
        _text(file)
        _number(file)
        return dict(_tensor(file) for _ in range(_number(file)))


def _number(file: IO[bytes]) -> int:
    return int(struct.unpack("<I", file.read(4))[0])


def _text(file: IO[bytes]) -> str:
    return file.read(struct.unpack("<H", file.read(2))[0])[:-1].decode()


def _tensor(file: IO[bytes]) -> tuple[str, NDArray[Any]]:
    name = _text(file)
    shape = [_number(file) for _ in range(file.read(1)[0])]
    kind = KINDS[file.read(1)[0]]
    return name, np.frombuffer(file.read(_number(file)), kind).reshape(shape)


def _carry_over(model: Path, target: Path) -> None:
    tensors = _read(model / "model.bin")
    with target.open("wb") as file:
        file.write(struct.pack("<12i", MAGIC, *_sizes(tensors)))
        _write_filters(file)
        _write_vocabulary(file, model)
        for name, values in _renamed(tensors):
            _write(file, name, values)


def _layers(tensors: Tensors, side: str) -> int:
    layers = {name.split("/")[1] for name in tensors if name.startswith(f"{side}/layer_")}
    return len(layers - {"layer_norm"})


def _sizes(tensors: Tensors) -> list[int]:
    words, width = tensors["decoder/embeddings/weight"].shape
    sizes = [words]
    for side in ("encoder", "decoder"):
        places = len(tensors[f"{side}/position_encodings/encodings"])
        sizes += [places, width, int(tensors[f"{side}/num_heads"]), _layers(tensors, side)]
    return [*sizes, tensors["encoder/conv1/weight"].shape[1], 1]


def _write_filters(file: IO[bytes]) -> None:
    from faster_whisper.feature_extractor import FeatureExtractor

    filters = np.asarray(FeatureExtractor().mel_filters, np.float32)
    file.write(struct.pack("<2i", *filters.shape) + filters.tobytes())


def _write_vocabulary(file: IO[bytes], model: Path) -> None:
    """Write the bytes of each token; the file that is read spells each byte as a letter."""
    vocabulary = json.loads((model / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    letters = {chr(b): b for b in plain} | {chr(256 + k): b for k, b in enumerate(others)}
    tokens = [t for t, _ in sorted(vocabulary.items(), key=lambda item: int(item[1]))][:50_256]
    file.write(struct.pack("<i", len(tokens)))
    for token in tokens:
        spelled = bytes(letters[c] for c in token)
        file.write(struct.pack("<i", len(spelled)) + spelled)


LINEAR = {
    "self_attention": (("attn.query", "attn.key", "attn.value"), ("attn.out",)),
    "attention": (
        ("cross_attn.query",),
        ("cross_attn.key", "cross_attn.value"),
        ("cross_attn.out",),
    ),
    "ffn": (("mlp.0",), ("mlp.2",)),
}
NORMS = {"self_attention": "attn_ln", "attention": "cross_attn_ln", "ffn": "mlp_ln"}
SINGLE = {
    "encoder/position_encodings/encodings": "encoder.positional_embedding",
    "decoder/position_encodings/encodings": "decoder.positional_embedding",
    "decoder/embeddings/weight": "decoder.token_embedding.weight",
    "encoder/layer_norm/gamma": "encoder.ln_post.weight",
    "encoder/layer_norm/beta": "encoder.ln_post.bias",
    "decoder/layer_norm/gamma": "decoder.ln.weight",
    "decoder/layer_norm/beta": "decoder.ln.bias",
}


def _renamed(tensors: Tensors) -> Iterator[tuple[str, NDArray[Any]]]:
    for name, values in tensors.items():
        parts = name.split("/")
        if name in SINGLE:
            yield SINGLE[name], values
        elif parts[1] in ("conv1", "conv2"):
            shaped = values if parts[2] == "weight" else values[:, np.newaxis]
            yield f"encoder.{parts[1]}.{parts[2]}", shaped
        elif len(parts) == 5:
            yield from _of_layer(parts, values)


def _of_layer(parts: list[str], values: NDArray[Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Name a layer's tensor; what CTranslate2 keeps in one is cut into query, key and value."""
    side, layer, block, piece, which = parts
    before = f"{side}.blocks.{layer.removeprefix('layer_')}"
    if piece == "layer_norm":
        yield f"{before}.{NORMS[block]}.{'weight' if which == 'gamma' else 'bias'}", values
        return
    names = LINEAR[block][int(piece.removeprefix("linear_"))]
    for name, part in zip(names, np.split(values, len(names)), strict=True):
        if (which, name.endswith(".key")) != ("bias", True):  # keys have no bias
            yield f"{before}.{name}.{which}", part


def _write(file: IO[bytes], name: str, values: NDArray[Any]) -> None:
    whole = values.ndim < 2 or name.endswith(("positional_embedding", ".bias"))
    shape = values.shape[::-1]
    file.write(struct.pack("<3i", len(shape), len(name), 0 if whole else 1))
    file.write(struct.pack(f"<{len(shape)}i", *shape) + name.encode())
    file.write(values.astype(np.float32 if whole else np.float16).tobytes())
