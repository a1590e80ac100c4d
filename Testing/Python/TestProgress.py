"""Long runs from Python: bars of tqdm, and Ctrl-C, which ends them."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
import unittest
import unittest.mock

import atlastest
import attentionatlas as atlas
from atlastest import AtlasTest

SIZES = {"vocabulary": 16, "context": 32, "heads": 2, "model_dimension": 32, "batch_size": 4}


class Bar:
    """A bar of tqdm as far as it is used."""

    made = []

    def __init__(self, total, desc, **options):
        self.total, self.desc, self.options, self.n, self.closed = total, desc, options, 0, False
        self.made.append(self)

    def update(self, more):
        assert not self.closed and more >= 0
        self.n += more

    def close(self):
        self.closed = True


class Progress(AtlasTest):
    def bars(self, run, notebook=True):
        modules = {"tqdm": types.ModuleType("tqdm"), "tqdm.auto": types.SimpleNamespace(tqdm=Bar)}
        if notebook:
            modules["ipykernel"] = types.ModuleType("ipykernel")
        Bar.made = []
        with unittest.mock.patch.dict(sys.modules, modules):
            run()
        return Bar.made

    def test_bars(self):
        with atlas.open(atlastest.TRANSFORMERS / "gpt2") as model:
            (record,) = self.bars(lambda: model.record(token_ids="1 2 3").close())
            self.assertEqual(record.desc, "record gpt2")
            (train,) = self.bars(lambda: atlas.train("RepeatedTokens", steps=20, checkpoint_every=10, **SIZES).close())
            self.assertEqual(train.desc, "train RepeatedTokens")
            for bar in (record, train):
                self.assertTrue(bar.closed and 0.5 < bar.n <= bar.total == 1, f"{bar.desc}: {bar.n}")
            self.assertEqual(self.bars(lambda: model.record(token_ids="1").close(), notebook=False), [], "nobody looks")
            with unittest.mock.patch.dict(sys.modules, {"tqdm": None, "ipykernel": types.ModuleType("ipykernel")}):
                model.record(token_ids="1 2 3").close()

    def test_the_keyboard_ends_a_run(self):
        """What was being made is deleted, and the next run is whole."""
        timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            atlas.train("RepeatedTokens", steps=1_000_000, checkpoint_every=1_000_000, **SIZES)
        timer.join()
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)
        with atlas.train("RepeatedTokens", steps=3, checkpoint_every=3, **SIZES) as model:
            self.assertEqual(list(model.curves()["Step"])[-1], 3)


class Command(unittest.TestCase):
    def test_the_keyboard_ends_a_command(self):
        """At once when it writes, without a traceback and without files."""
        code = """if True:
            import os, signal, sys, threading, time
            from attentionatlas.__main__ import main

            def interrupt():
                while not os.path.exists(sys.argv[-1]):
                    time.sleep(0.01)
                time.sleep(0.5)
                os.kill(os.getpid(), signal.SIGINT)

            threading.Thread(target=interrupt, daemon=True).start()
            main()"""
        folder = atlastest.OUTPUT / "none"
        shutil.rmtree(folder, ignore_errors=True)  # of a run that failed
        done = subprocess.run(
            [sys.executable, "-c", code, "figures", str(atlastest.RECORDING), "-o", str(folder)], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, -signal.SIGINT, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        end = time.monotonic() + 30  # what keeps folders clean comes after the copies of the process
        while folder.exists() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse(folder.exists())
