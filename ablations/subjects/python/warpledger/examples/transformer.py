# SPDX-License-Identifier: Apache-2.0
"""A small transformer with random weights, once with PyTorch's attention and once with Warpledger's: the same
text, and the times of both.

    python -m warpledger.examples.transformer [--layers 8] [--tokens 128] [--prompt 2048] [--batch 4]

PyTorch's attention is each of its backends, and the fastest counts. The weights and the prompt are the same in
each run, and so are the caches of K and V. A greedy text follows the largest logit, so that two
attentions, each right to its last bit but one, part where two logits are nearly equal: then the program says at
which token, and by how much the logits differed.
"""

import argparse
import contextlib
import sys
import time
import warnings

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

import warpledger.torch

VOCABULARY, HEADS, KV_HEADS, HEAD_DIM = 4096, 16, 4, 128
WIDTH = HEADS * HEAD_DIM


class Transformer:
    """Rotary positions are left out: nothing here depends on them."""

    def __init__(self, layers):
        generator = torch.Generator(device="cuda").manual_seed(0)

        def weights(*shape):
            values = torch.randn(shape, device="cuda", generator=generator) / shape[0] ** 0.5
            return values.half()

        columns = WIDTH + 2 * KV_HEADS * HEAD_DIM
        self.embedding = weights(VOCABULARY, WIDTH) * VOCABULARY ** 0.5
        self.layers = [{"qkv": weights(WIDTH, columns), "out": weights(WIDTH, WIDTH),
                        "up": weights(WIDTH, 4 * WIDTH), "down": weights(4 * WIDTH, WIDTH)} for _ in range(layers)]
        self.head = weights(WIDTH, VOCABULARY)

    def caches(self, batch, most):
        return [torch.zeros(2, batch, KV_HEADS, most, HEAD_DIM, dtype=torch.float16, device="cuda")
                for _ in self.layers]

    def logits(self, tokens, caches, begin):
        """Of the last position. tokens: (batch, new) behind `begin` that the caches hold."""
        x = self.embedding[tokens]
        end = begin + tokens.shape[1]
        for layer, cache in zip(self.layers, caches):
            rows = functional.rms_norm(x, (WIDTH,)) @ layer["qkv"]
            heads = rows.unflatten(2, (-1, HEAD_DIM)).transpose(1, 2)
            q, k, v = heads.split((HEADS, KV_HEADS, KV_HEADS), dim=1)
            cache[0, :, :, begin:end], cache[1, :, :, begin:end] = k, v
            out = functional.scaled_dot_product_attention(q, cache[0, :, :, :end], cache[1, :, :, :end],
                                                          is_causal=begin == 0, enable_gqa=True)
            x = x + out.transpose(1, 2).flatten(2) @ layer["out"]
            x = x + functional.gelu(functional.rms_norm(x, (WIDTH,)) @ layer["up"]) @ layer["down"]
        return (functional.rms_norm(x[:, -1], (WIDTH,)) @ self.head).float()

    def write(self, prompt, tokens):
        """(text, logits, seconds of the prompt, seconds of each token)"""
        caches = self.caches(prompt.shape[0], prompt.shape[1] + tokens)
        text, told, times, given = [], [], [], prompt
        for i in range(tokens):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            logits = self.logits(given, caches, 0 if i == 0 else prompt.shape[1] + i - 1)
            given = logits.argmax(1, keepdim=True)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
            text.append(given)
            told.append(logits)
        return torch.cat(text, 1), torch.stack(told, 1), times[0], sorted(times[1:])[len(times[1:]) // 2]


@contextlib.contextmanager
def attention(function, backend=None):
    """What functional.scaled_dot_product_attention is meanwhile, and which of PyTorch's backends it takes."""
    own = functional.scaled_dot_product_attention
    functional.scaled_dot_product_attention = function
    try:
        with sdpa_kernel(backend) if backend else contextlib.nullcontext():
            yield
    finally:
        functional.scaled_dot_product_attention = own


def contenders():
    """{name: what attention() takes}"""
    own = functional.scaled_dot_product_attention

    def expanded(query, key, value, enable_gqa=False, **options):  # for a backend that has no groups of heads
        each = query.shape[1] // key.shape[1]
        return own(query, key.repeat_interleave(each, 1), value.repeat_interleave(each, 1), **options)

    found = {"PyTorch's choice": (own,)}
    for backend in SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION:
        found[f"PyTorch, {backend.name}"] = own, backend
        found[f"PyTorch, {backend.name}, K and V repeated"] = expanded, backend
    return found | {"Warpledger": (warpledger.torch.scaled_dot_product_attention,)}


def compare_texts(theirs, told, ours, logits):
    """Prints how far they agree; whether they part at no more than a tie."""
    fine, apart = True, 0.0
    for b in range(len(ours)):
        differs = (theirs[b] != ours[b]).nonzero()
        same = int(differs[0]) if len(differs) else ours.shape[1] - 1
        apart = max(apart, float((told[b, :same + 1] - logits[b, :same + 1]).abs().max()))
        if not len(differs):
            continue
        off = float((told[b, same] - logits[b, same]).abs().max())
        two = told[b, same].topk(2).values
        tied = float(two[0] - two[1]) <= 2 * off
        fine = fine and tied
        print(f"  text {b} parts at token {same}: the two largest logits are {float(two[0] - two[1]):.5f} apart, "
              f"and logits differ by up to {off:.5f}{'' if tied else ': WRONG'}")
    print(f"  {int((theirs == ours).all(1).sum())} of {len(ours)} texts are equal; while they are, logits, of up to "
          f"{float(told.abs().max()):.1f}, differ by at most {apart:.5f}")
    return fine


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, usual in ("layers", 8), ("tokens", 128), ("prompt", 2048), ("batch", 4):
        parser.add_argument(f"--{name}", type=int, default=usual)
    given = parser.parse_args(arguments)
    model = Transformer(given.layers)
    generator = torch.Generator(device="cuda").manual_seed(1)
    prompt = torch.randint(VOCABULARY, (given.batch, given.prompt), device="cuda", generator=generator)
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}: {given.layers} layers, {HEADS} heads, "
          f"{KV_HEADS} of K and V, head_dim {HEAD_DIM}, float16; {given.batch} prompts of {given.prompt} tokens, "
          f"texts of {given.tokens}. Each wrote its text once before it was timed.")
    texts = {}
    warnings.simplefilter("ignore")  # why a backend does not do it: its error says that it doesn't
    with torch.inference_mode():
        for name, takes in contenders().items():
            try:
                with attention(*takes):
                    model.write(prompt, given.tokens)  # code is loaded, and plans for each length are made
                    texts[name] = model.write(prompt, given.tokens)
            except RuntimeError as error:
                print(f"{name:45}: {str(error).splitlines()[0]}")
                continue
            *_, first, each = texts[name]
            print(f"{name:45}: prompt {first * 1e3:.2f} ms, {each * 1e6:.0f} us a token", flush=True)
    *_, ours_first, ours_each = ours = texts.pop("Warpledger")
    for what, index, mine in ("prompt", 2, ours_first), ("token", 3, ours_each):
        name = min(texts, key=lambda name: texts[name][index])  # noqa: B023
        print(f"{what}: {texts[name][index] / mine:.2f} times as fast as the best of PyTorch, {name}")
    fine = True
    for name, theirs in texts.items():
        print(f"beside {name}:")
        fine = compare_texts(*theirs[:2], *ours[:2]) and fine
    print(f"the first text begins {' '.join(map(str, ours[0][0, :8].tolist()))}")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
