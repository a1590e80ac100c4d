"""Works that take long on one thread, each of which Cancel.py --log cancels: they are reported in the file CANCEL_LOG.
The last one is that of the session CancelEach.xml, an Apply."""

import os
import random
import time

from paraview import simple

DATA = os.environ["CANCEL_DATA"]
LOG = os.environ["CANCEL_LOG"]
WORDS = "the LORD said unto Moses and Aaron king of Egypt light darkness earth heaven waters people went down upon".split()


def report(kind, value):
    with open(LOG, "a", encoding="utf-8") as log:
        log.write(f"{kind} {value} {time.time():.3f}\n")


def work(name, source):
    """Updates a source, whose progress is reported."""
    algorithm = source.GetClientSideObject()
    observer = algorithm.AddObserver(
        "ProgressEvent", lambda caller, _: report("progress", f"{caller.GetProgress():.5f}")
    )
    report("begin", name)
    source.UpdatePipeline()
    report("end", name)
    algorithm.RemoveObserver(observer)
    simple.Delete(source)


def write_text(path):
    chance = random.Random(1)
    line = " ".join(chance.choice(WORDS) for _ in range(200)) + "\n"
    with open(path, "w", encoding="utf-8") as text:
        text.write(line * 20_000)


def main():
    model = simple.TransformerReader(FileName=f"{DATA}/models/language-2/config.json")
    work("training", simple.TransformerTraining(Steps=3000))
    prompts = simple.RandomPrompts(Kind="Random", Length=100, Count=10_000, IdRange=[1, 500])
    work("recording", simple.TransformerRecorder(Input=model, Tokens=prompts, Layers=[0], Record=["QueriesAndKeys"]))
    few = simple.RandomPrompts(Kind="Random", Length=100, Count=4, IdRange=[1, 500])
    recording = simple.TransformerRecorder(Input=model, Tokens=few)
    recording.UpdatePipeline()
    work("embedding", simple.HeadEmbedding(Input=recording, Method="TSNE", Iterations=1_000_000))
    text = f"{LOG}.txt"
    write_text(text)
    work("corpus", simple.CorpusStatistics(Input=model, Files=[text], TokenLimit=0))
    for source in (recording, few, prompts, model):
        simple.Delete(source)
    report("apply", "apply")


main()
