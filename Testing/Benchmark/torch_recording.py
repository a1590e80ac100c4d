#!/usr/bin/env python3
"""Runs a transformer of the size of GPT-2 small with torch (Debian: python3-torch) and keeps the
queries, keys and values of all heads, to compare BenchmarkTransformer with.

    torch_recording.py SEQUENCES LENGTH RUNS THREADS sleep|spin

The last is what threads do while they wait (torch_peer.py). Prints the seconds of the fastest run, or that the
package is missing.
"""

import sys
import time

import torch_peer

torch = torch_peer.load(int(sys.argv[4]), sys.argv[5])

LAYERS, HEADS, D, VOCABULARY, POSITIONS = 12, 12, 768, 50257, 4096


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(D), torch.nn.LayerNorm(D)
        self.inputs, self.output = torch.nn.Linear(D, 3 * D), torch.nn.Linear(D, D)
        self.widen, self.narrow = torch.nn.Linear(D, 4 * D), torch.nn.Linear(4 * D, D)

    def forward(self, x, mask, kept):
        batch, length, _ = x.shape
        q, k, v = (
            part.view(batch, length, HEADS, D // HEADS).transpose(1, 2)
            for part in self.inputs(self.first(x)).split(D, dim=2)
        )
        kept += [q, k, v]
        if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
            mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(2, 3) / (D // HEADS) ** 0.5
            mixed = scores.masked_fill(mask, float("-inf")).softmax(dim=3) @ v
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, length, D))
        return x + self.narrow(torch.nn.functional.gelu(self.widen(self.second(x)), approximate="tanh"))


def main():
    sequences, length, runs = map(int, sys.argv[1:4])
    tokens, positions = torch.nn.Embedding(VOCABULARY, D), torch.nn.Embedding(POSITIONS, D)
    layers = [Layer() for _ in range(LAYERS)]
    ids = torch.randint(VOCABULARY, (sequences, length))
    mask = torch.ones(length, length, dtype=torch.bool).triu(1)
    fastest = float("inf")
    with torch.inference_mode():
        for _ in range(runs):
            begin = time.perf_counter()
            x, kept = tokens(ids) + positions.weight[:length], []
            for layer in layers:
                x = layer(x, mask, kept)
            fastest = min(fastest, time.perf_counter() - begin)
    print(fastest)


if __name__ == "__main__":
    main()
