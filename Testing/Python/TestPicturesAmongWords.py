"""Models of pictures among words: texts with markers, files of pictures and videos, and their recordings.

Expected values are those of the original code, in Testing/Oracle.
"""

import json
import os
import shutil
import subprocess

import attentionatlas as atlas
import atlastest
from atlastest import MODELS, AtlasTest, token_lines
from attentionatlas._internal import data
from paraview import servermanager, simple

#: The tokens around pictures, by id. All other words of the tokenizer are w0, w1, ...
AROUND = {
    "llava": {60: "<image>"},
    "internvl": {60: "<IMG_CONTEXT>", 61: "<img>", 62: "</img>"},
    "smolvlm": {
        39: "\n",
        60: "<image>",
        61: "<fake_token_around_image>",
        62: "<global-img>",
        **{40 + i: f"<row_{i // 4 + 1}_col_{i % 4 + 1}>" for i in range(8)},
    },
    "qwen2_vl": {59: "<|video_pad|>", 60: "<|image_pad|>", 61: "<|vision_start|>", 62: "<|vision_end|>"},
}
AROUND["qwen2_5_vl"] = AROUND["qwen2_vl"]

#: The sequences with pictures of one kind, and the numbers of these.
PICTURES = {
    "llava": ((0, 1), (0, 1)),
    "internvl": ((0, 1), (0, 1)),
    "smolvlm": ((0, 1), (0,)),
    "qwen2_vl": ((0,), (0,)),
    "qwen2_5_vl": ((0, 1), (0, 1)),
}


def tables(data):
    """All tables of a recording."""
    iterator = data.NewIterator()
    while not iterator.IsDoneWithTraversal():
        yield iterator.GetCurrentDataObject()
        iterator.GoToNextItem()


class PicturesAmongWords(AtlasTest):
    def expected(self, name):
        """The sequences of the oracle without padding; a model with a tokenizer of words."""
        self.values, _ = atlastest.read_safetensors(MODELS / name / "expected.safetensors")
        kept = self.values["attention_mask"] != 0
        rows, self.numbers = PICTURES[name]
        self.rows = rows
        self.sequences = [self.values["input_ids"][row][kept[row]].tolist() for row in rows]
        self.folder = atlastest.OUTPUT / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for file in ("config.json", "preprocessor_config.json", "model.safetensors"):
            shutil.copy(MODELS / name / file, self.folder)
        added = AROUND[name]
        words = {added.get(i, f"w{i}"): i for i in range(64)}
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        tokenizer = {
            "added_tokens": [{"id": i, "content": token, "special": True, **flags} for i, token in added.items()],
            "normalizer": None,
            "pre_tokenizer": {"type": "WhitespaceSplit"},
            "post_processor": None,
            "decoder": None,
            "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"},
        }
        (self.folder / "tokenizer.json").write_text(json.dumps(tokenizer))

    def pictures(self, name, numbers):
        return [str(MODELS / name / f"picture-{number}.png") for number in numbers]

    def text(self, name, sequence, marker):
        """A sequence as words, in which a marker stands for each picture and what is around it."""
        text, inside = "", False
        for token in sequence:
            part = token in AROUND[name]
            text += "" if part and inside else marker if part else f" w{token}"
            inside = part
        return text

    def check(self, recording):
        """Token ids and attention are those of the original."""
        self.assertEqual(self.column(recording, "TokenId"), sum(self.sequences, []))
        for place, row in enumerate(self.rows):
            shown = simple.AttentionMap(Input=recording, Layer=1, Head=2, Sequence=place)
            shown.UpdatePipeline()
            length = len(self.sequences[place])
            expected = self.values["layer.1.attention"][row, 2, :length, :length]
            self.assert_close(data.image(shown, "Weights")[::-1], expected)
            simple.Delete(shown)

    def column(self, recording, name):
        """A column of the recording's tokens."""
        column = data.blocks(data.first_part(recording))["tokens"].GetColumnByName(name)
        return [column.GetValue(i) for i in range(column.GetNumberOfValues())]

    def record(self, **options):
        model = simple.TransformerReader(FileName=str(self.folder / "config.json"))
        recorder = simple.TransformerRecorder(Input=model, **options)
        recorder.UpdatePipeline()
        return recorder

    def tearDown(self):
        """There may be warnings of pictures whose edges are cut off, and no others: not of heads of encoder and text whose
        dimensions differ."""
        for error in self.take_errors():
            self.assertIn("are resized and cropped to 12 x 12", error)
        super().tearDown()

    def test_the_kinds_of_attention_are_those_of_the_recording(self):
        """The attention of words and pictures, and that of the encoder of images; cross attention of others alone."""
        self.expected("llava")
        text = self.text("llava", self.sequences[0], "<image>")
        pictured = self.record(Prompts=text, Images=self.pictures("llava", self.numbers[:1]))
        bart = atlastest.read_transformer("bart")
        translated = simple.TransformerRecorder(Input=bart, TokenIds="5 7 9", Targets="8 6")
        plain = atlastest.read_recording()
        kinds = ["Decoder", "Encoder", "Cross"]
        filters = ("AttentionMap", "AttentionMatrix", "AttentionSentence", "PatchAttention", "HeadScores", "HeadEmbedding")
        for name in filters:
            with self.subTest(filter=name):
                shown = getattr(simple, name)(Input=pictured)
                choices = shown.GetProperty("AttentionKind")
                shown.UpdatePipelineInformation()
                self.assertEqual(choices.Available, kinds[:2])
                shown.AttentionKind = "Encoder"
                with self.assertRaisesRegex(ValueError, "Cross is not a valid value"):
                    shown.AttentionKind = "Cross"
                shown.Input = translated
                self.assertEqual(choices.Available, kinds)  # not known yet
                shown.UpdatePipelineInformation()
                self.assertEqual(choices.Available, kinds)
                shown.AttentionKind = "Cross"
                shown.Input = plain
                shown.UpdatePipelineInformation()
                self.assertEqual(choices.Available, kinds[:1])
        self.take_errors()  # of pictures that are not there

    def test_copies_say_nothing_of_dimensions_that_differ(self):
        """tearDown sees what ParaView says when it lists the arrays of a recording, and of copies of it."""
        self.expected("llava")
        text = self.text("llava", self.sequences[0], "<image>")
        recorder = self.record(Prompts=text, Images=self.pictures("llava", self.numbers[:1]))
        shown = simple.ExtractBlock(Input=recorder, Selectors=["/Root"])
        for source in (recorder, shown):
            source.UpdatePipeline()
            source.GetDataInformation().GetNumberOfRows()
            columns = [table.GetColumnByName("Output") for table in tables(servermanager.Fetch(source))]
            sizes = {column.GetNumberOfComponents() for column in columns if column}
            self.assertEqual(sizes, {16, 32})

    def test_texts_are_those_of_the_original(self):
        for name in AROUND:
            with self.subTest(model=name):
                self.expected(name)
                prompts = "\n".join(self.text(name, sequence, "<image>") for sequence in self.sequences)
                recorder = self.record(Prompts=prompts, Images=self.pictures(name, self.numbers))
                self.check(recorder)
                recorder.UpdatePropertyInformation()
                videos = recorder.GetProperty("ReadsVideosInfo").GetData()
                self.assertEqual(videos, int(name != "llava"))

    def test_token_ids_are_those_of_the_original(self):
        for name in AROUND:
            with self.subTest(model=name):
                self.expected(name)
                (self.folder / "tokenizer.json").unlink()
                self.check(self.record(TokenIds=token_lines(self.sequences), Images=self.pictures(name, self.numbers)))

    def test_a_video_is_that_of_the_original(self):
        self.expected("qwen2_vl")
        self.rows = (1,)
        kept = self.values["attention_mask"][1] != 0
        self.sequences = [self.values["input_ids"][1][kept].tolist()]
        prompt = self.text("qwen2_vl", self.sequences[0], "<video>")
        images = self.pictures("qwen2_vl", (1, 2, 3))
        self.check(self.record(Prompts=prompt, Images=images, FramesPerFilm=3))

    def test_tokens_of_pictures_have_places_and_colors(self):
        self.expected("smolvlm")
        prompts = "\n".join(self.text("smolvlm", sequence, "<image>") for sequence in self.sequences)
        recorder = self.record(Prompts=prompts, Images=self.pictures("smolvlm", self.numbers))
        labels = self.column(recorder, "Token")
        grid, tiles = self.values["image_token_grid"], self.values["tiles"]
        for (row, place), (tile, _, y, x) in zip(self.values["image_tokens"], grid):
            left = 0 if tiles[tile][1] < 0 else 2 * tiles[tile][2]
            expected = f"{int(tiles[tile][1] < 0)}: {y}, {left + x}"
            self.assertEqual(labels[sum(map(len, self.sequences[:row])) + place], expected)

    def test_python_reads_pictures_beside_prompts(self):
        self.expected("llava")
        prompts = [self.text("llava", sequence, " <image>") for sequence in self.sequences]
        with atlas.open(self.folder) as model:
            with model.record(prompts, images=self.pictures("llava", self.numbers)) as recording:
                self.assertEqual(recording.lengths, [len(sequence) for sequence in self.sequences])
                length = len(self.sequences[1])
                expected = self.values["layer.0.attention"][1, 3, :length, :length]
                self.assert_close(recording.attention(0, 3, 1), expected)
            self.take_errors()
            with self.assertRaisesRegex(ValueError, "of which there are 2, found 1 in 1 prompt."):
                model.record(prompts[0], images=self.pictures("llava", self.numbers))

    def test_the_command_reads_pictures_beside_prompts(self):
        self.expected("llava")
        prompts = [self.text("llava", sequence, " <image>") for sequence in self.sequences]
        file = atlastest.OUTPUT / "command.safetensors"
        command = [os.environ["ATLAS_PROGRAM"], "record", str(self.folder), *prompts]
        images = self.pictures("llava", self.numbers)
        for image in images:
            command += ["--images", image]
        subprocess.run([*command, "-o", str(file)], check=True, capture_output=True)
        self.check(atlastest.read_recording(file))

    def test_generated_words_follow_pictures(self):
        for name in ("llava", "qwen2_5_vl"):
            with self.subTest(model=name):
                self.expected(name)
                prompts = "\n".join(self.text(name, sequence, "<image>") for sequence in self.sequences)
                images = self.pictures(name, self.numbers)
                recorder = self.record(Prompts=prompts, Images=images, GenerateTokens=1)
                recorder.UpdatePipeline(1)
                ids = self.column(recorder, "TokenId")
                end = 0
                for row, sequence in zip(self.rows, self.sequences):
                    end += len(sequence) + 1
                    self.assertEqual(ids[end - 1], self.values["logits"][row, len(sequence) - 1].argmax())
                recorder.UpdatePipeline(0)
                self.check(recorder)
