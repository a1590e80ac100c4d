"""Recordings and maps on several MPI ranks are as on one, to the byte."""

import os
import pathlib

import atlastest
from atlastest import MODELS, RANKS, RECORD, TRANSFORMERS, read_transformer
from paraview import servermanager, simple
from ranktest import RankTest, tables


def status(process, key):
    """An entry of what the kernel says of a process."""
    for line in pathlib.Path("/proc", str(process), "status").read_text().splitlines():
        name, value = line.split(":", 1)
        if name == key:
            return value.strip()
    raise KeyError(key)


def processors(process):
    """How many processors a process may run on."""
    return int(status(process, "Cpus_allowed").replace(",", ""), 16).bit_count()


def ranks_of_host():
    """The processes of all ranks: those that mpirun has started on this host."""
    launcher = str(os.getppid())
    program = status("self", "Name")
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if status(folder.name, "PPid") == launcher and status(folder.name, "Name") == program:
                    found.append(int(folder.name))
            except (FileNotFoundError, ProcessLookupError):  # it has ended
                pass
    return found


def workers(process):
    """The threads of Core in a process, beside those that call it."""
    tasks = pathlib.Path("/proc", str(process), "task").iterdir()
    return sum((task / "comm").read_text().strip() == "atlas-worker" for task in tasks)


def ids(lengths):
    """Token ids of sequences of these lengths."""
    return "\n".join(" ".join(str((7 * t + 3 * s) % 101) for t in range(n)) for s, n in enumerate(lengths))


#: Of each head, the arrays Query, Key, Value and ValueNorm.
OF_HEADS = ["QueriesAndKeys", "Values"]


class Ranks(RankTest):
    def recorder(self):
        prompts = simple.RandomPrompts(Length=60, Count=2, IdRange=[0, 228])
        return simple.TransformerRecorder(Input=read_transformer("llama"), Tokens=prompts, Record=OF_HEADS)

    def assert_recorded(self, name, recorder, count):
        """Expects so many arrays on every rank, with the bytes that they have on one."""
        for part in self.parts(recorder):
            arrays = tables(part)
            self.assertEqual(len(arrays), count)
            self.assert_as_on_one_rank(name, arrays)

    def test_every_rank_has_the_recording(self):
        self.assert_recorded("heads", self.recorder(), 3 + 2 * 4 * 4)

    def test_sequences_of_other_lengths(self):
        for model in ("llama", "bloom"):
            for name, lengths in (
                ("several", [1, 40, 3, 17, 64, 64, 2, 30]),
                ("long-first", [64, 1, 1]),
                ("one", [33]),
            ):
                with self.subTest(model=model, lengths=name):
                    reader = read_transformer(model)
                    recorder = simple.TransformerRecorder(Input=reader, TokenIds=ids(lengths), Record=RECORD)
                    self.assert_recorded(f"{model}-{name}", recorder, 3 + 2 * 4 * 5 + 3)

    def test_routing(self):
        recorder = simple.TransformerRecorder(
            Input=read_transformer("qwen2_moe"),
            TokenIds="\n".join(" ".join(str(t * 5 % 97) for t in range(n)) for n in (9, 1, 30, 12)),
            Record=["Routing", "1"],
        )
        self.assert_recorded("routing", recorder, 3 + 2 * 2)

    def test_interventions(self):
        recorder = simple.TransformerRecorder(
            Input=read_transformer("llama"),
            TokenIds=ids([20, 20, 20]),
            Ablate="0.1 1.2@3",
            AblateTo="MeanOverPrompts",
            PatchFrom=ids([0, 20]).strip(),
            PatchSites="0.3 r1@5 m1",
            Record=OF_HEADS,
        )
        self.assert_recorded("interventions", recorder, 3 + 2 * 4 * 4)
        recorder.PatchFrom = "1 2"
        recorder.UpdatePipeline()
        self.assert_one_error("PatchFrom: expected as many tokens")

    def test_each_rank_keeps_to_its_processors(self):
        """The threads of all ranks are no more than the processors, bound to cores or not."""
        self.recorder().UpdatePipeline()
        processes = ranks_of_host()
        self.assertEqual(len(processes), RANKS)
        share = max(processors(os.getppid()) // RANKS, 1)
        limit = int(os.environ.get("VTK_SMP_MAX_THREADS", "0"))
        for process in processes:
            self.assertLess(workers(process), limit or min(processors(process), share))

    def test_images(self):
        images = [str(TRANSFORMERS / "vit" / "expected.safetensors")]
        recorder = simple.TransformerRecorder(Input=read_transformer("vit"), Images=images, Record=OF_HEADS)
        recorder.UpdatePipeline()
        self.take_errors()  # the reader's warning of tensors that are not used
        self.assert_recorded("images", recorder, 6 + 2 * 4 * 4)

    def test_pictures_among_words(self):
        """The encoder of pictures has sequences of its own: tiles, or groups of frames."""
        for name, tokens in (("llava", "1 60\n2 3\n60 4 60"), ("qwen2_5_vl", "5 6\n7 60\n60 8 60")):
            with self.subTest(model=name):
                images = [str(MODELS / name / f"picture-{i}.png") for i in (0, 1, 0)]
                reader = read_transformer(name)
                recorder = simple.TransformerRecorder(Input=reader, TokenIds=tokens, Images=images, Record=OF_HEADS)
                recorder.UpdatePipeline()
                self.take_errors()  # warnings of pictures that are resized
                self.assert_recorded(f"pictures-{name}", recorder, 8 + 2 * 4 * 4 + 6 + 2 * 2 * 4)

    def test_an_error_of_all_is_told_once(self):
        recorder = simple.TransformerRecorder(Input=read_transformer("llama"), TokenIds="1 2\n3 9999\n4", Record=OF_HEADS)
        recorder.UpdatePipeline()
        self.assert_one_error("sequence 1, position 1: expected a token id", "found 9999")
        recorder.UpdatePipeline()  # no rank waits for one that has nothing new to do
        self.assertLessEqual(len(self.take_errors()), 1)
        recorder.TokenIds = "1 2\n3 4\n5"
        self.assert_recorded("mended", recorder, 3 + 2 * 4 * 4)

    def test_an_error_of_one_is_that_of_all(self):
        """Only the rank that runs a sequence meets its numbers that are none."""
        folder = atlastest.OUTPUT / "broken"
        folder.mkdir(exist_ok=True)
        tensors, metadata = atlastest.read_safetensors(TRANSFORMERS / "llama" / "model.safetensors")
        name = "model.embed_tokens.weight"
        embedding = tensors[name].copy()
        embedding[200, 0] = float("nan")
        atlastest.write_safetensors(folder / "model.safetensors", {**tensors, name: embedding}, metadata)
        config = folder / "config.json"
        config.write_bytes((TRANSFORMERS / "llama" / "config.json").read_bytes())
        model = simple.TransformerReader(FileName=str(config))
        recorder = simple.TransformerRecorder(Input=model, Record=OF_HEADS)
        for tokens, sequence in (("1 2\n3 4\n5 200", 2), ("1 200\n3 4\n5 6", 0)):
            recorder.TokenIds = tokens
            recorder.UpdatePipeline()
            self.assert_one_error(f"activation is nan (sequence {sequence}, position 1)")
        recorder.TokenIds = ids([20, 20, 20])
        self.assert_recorded("without", recorder, 3 + 2 * 4 * 4)

    def test_no_rank_sees_new_files_alone(self):
        """Each rank has files of its own, and those of the first one are mended before the others."""
        folder = atlastest.OUTPUT / "own"
        ranks = [folder / str(rank) for rank in range(RANKS)]
        for place in ranks:
            place.mkdir(parents=True, exist_ok=True)
            (place / "model.safetensors").write_bytes((TRANSFORMERS / "llama" / "model.safetensors").read_bytes())
            (place / "config.json").write_text("{")
        source = simple.ProgrammableSource(OutputDataSetType="vtkTable")
        source.Script = f"""
import os
from vtkmodules.vtkCommonCore import vtkLogger
from vtkmodules.vtkParallelCore import vtkMultiProcessController
controller = vtkMultiProcessController.GetGlobalController()
rank = controller.GetLocalProcessId() if controller else 0
os.chdir({str(folder)!r} + "/" + str(rank))
if rank: # the errors of the others are of their own files, and are not read here
    vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_OFF)
"""
        before = os.getcwd()
        source.UpdatePipeline()
        try:
            reader = simple.TransformerReader(FileName="config.json")
            recorder = simple.TransformerRecorder(Input=reader, TokenIds=ids([20, 20, 20]), Record=OF_HEADS)
            recorder.UpdatePipeline()
            for error in self.take_errors():
                self.assertIn("config.json", error)
            for mended in ranks:
                (mended / "config.json").write_bytes((TRANSFORMERS / "llama" / "config.json").read_bytes())
                recorder.UpdatePipeline()
            if RANKS > 1:  # a single rank has read it again
                self.assertEqual(tables(servermanager.Fetch(recorder, 0)), {})
                simple.ReloadFiles(reader)
                recorder.UpdatePipeline()
            self.assert_recorded("own", recorder, 3 + 2 * 4 * 4)
        finally:
            source.Script = f"""
import os
from vtkmodules.vtkCommonCore import vtkLogger
os.chdir({before!r})
vtkLogger.SetStderrVerbosity(vtkLogger.VERBOSITY_WARNING)
"""
            source.UpdatePipeline()

    def test_a_cancel_on_one_is_that_of_all(self):
        recorder = self.recorder()
        algorithm = recorder.GetClientSideObject()  # of the first rank

        def cancel(*_):
            if 0 < algorithm.GetProgress() < 1:
                algorithm.SetAbortExecute(1)

        observer = algorithm.AddObserver("ProgressEvent", cancel)
        recorder.UpdatePipeline()
        algorithm.RemoveObserver(observer)
        self.assertEqual([tables(part) for part in self.parts(recorder)], [{}] * RANKS)
        recorder.MaximumLength = 60  # ParaView updates again what has changed
        self.assert_recorded("heads", recorder, 3 + 2 * 4 * 4)

    def test_map(self):
        attention = simple.AttentionMap(Input=self.recorder(), Sequence=1, Layer=1, Head=2)
        arrays = self.image_arrays(attention)
        self.assertEqual(arrays["Weights"].shape, (60, 60, 1))
        self.assert_as_on_one_rank("map", arrays)

    def test_save_data(self):
        recorder = self.recorder()
        path = atlastest.OUTPUT / "saved.safetensors"
        simple.SaveData(str(path), proxy=recorder)
        tensors, _ = atlastest.read_safetensors(path)
        self.assert_as_on_one_rank("saved", tensors)
