#!/usr/bin/env python3
"""Trains the two-layer attention-only model of BenchmarkLearning with torch (Debian:
python3-torch), to compare it with.

    torch_training_step.py LAYERS HEADS D VOCABULARY CONTEXT BATCH STEPS THREADS

Prints the seconds of the fastest step, or that the package is missing. Threads sleep while they wait (torch_peer.py).
Attention is written as torch users write it: one product for queries, keys and values, a masked softmax over all keys,
torch.optim.AdamW with clipping.
"""

import sys
import time

import torch_peer

torch = torch_peer.load(int(sys.argv[8]), "sleep")


class Layer(torch.nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.LayerNorm(d)
        self.inputs = torch.nn.Linear(d, 3 * d)
        self.output = torch.nn.Linear(d, d)

    def forward(self, x, mask):
        batch, length, d = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, d // self.heads).transpose(1, 2)
            for part in self.inputs(self.norm(x)).split(d, dim=2)
        )
        scores = q @ k.transpose(2, 3) / (d // self.heads) ** 0.5
        weights = scores.masked_fill(mask, float("-inf")).softmax(dim=3)
        return x + self.output((weights @ v).transpose(1, 2).reshape(batch, length, d))


class Model(torch.nn.Module):
    def __init__(self, layers, heads, d, vocabulary, context):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, d)
        self.positions = torch.nn.Embedding(context, d)
        self.layers = torch.nn.ModuleList(Layer(d, heads) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(d)
        self.unembedding = torch.nn.Linear(d, vocabulary)
        self.register_buffer("mask", torch.ones(context, context, dtype=torch.bool).triu(1))

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x, self.mask)
        return self.unembedding(self.norm(x))


def main():
    layers, heads, d, vocabulary, context, batch, steps = map(int, sys.argv[1:8])
    model = Model(layers, heads, d, vocabulary, context)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(vocabulary, (batch, context))
    targets = torch.randint(vocabulary, (batch * context,))
    fastest = float("inf")
    for _ in range(steps):
        begin = time.perf_counter()
        loss = torch.nn.functional.cross_entropy(model(ids).view(-1, vocabulary), targets)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        fastest = min(fastest, time.perf_counter() - begin)
    print(fastest)


if __name__ == "__main__":
    main()
