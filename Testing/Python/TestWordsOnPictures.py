"""What words attend to on the pictures among them: of a recording by hand, in views, figures and a scene."""

import types

import atlastest
import numpy
import picturedrecording as by_hand
from atlastest import AtlasTest, simple
from attentionatlas import Recording, patches, record
from attentionatlas._internal import data
from vtkmodules.util.numpy_support import vtk_to_numpy


class WordsOnPictures(AtlasTest):
    @classmethod
    def setUpClass(cls):
        cls.path = by_hand.write_recording(atlastest.OUTPUT / "pictured.safetensors")

    def setUp(self):
        super().setUp()
        self.recording = atlastest.read_recording(self.path)
        self.patches = simple.PatchAttention(Input=self.recording)

    def cells(self, name, port=0):
        return vtk_to_numpy(data.fetch(self.patches, port).GetCellData().GetArray(name))

    def heat(self):
        """The weights by picture, in the order of rows and columns."""
        heats = [numpy.full(size, numpy.nan) for size in by_hand.SIZES]
        places = zip(*(self.cells(name) for name in ("Picture", "Row", "Column", "Weight")))
        for picture, row, column, weight in places:
            heats[picture][row, column] = weight
        return heats

    def on_words(self):
        return data.field_number(self.patches, "Weight on Words")

    def test_a_word_lights_up_what_it_names(self):
        disc, square = by_hand.regions()
        for token, lit in ((by_hand.DISC, 0), (by_hand.SQUARE, 1), (-1, 1), (by_hand.DISC - 1, 0)):
            self.patches.Token = token
            for picture, (heat, region) in enumerate(zip(self.heat(), (disc, square))):
                expected = by_hand.SHARE * region / region.sum() * (picture == lit)
                numpy.testing.assert_allclose(heat, expected, atol=1e-6)
            self.assertAlmostEqual(self.on_words(), 1 - by_hand.SHARE, places=6)
        self.patches.Token = by_hand.DISC + 1  # to the word before
        self.assertEqual([heat.max() for heat in self.heat()], [0, 0])
        self.assertEqual(self.on_words(), 1)

    def test_what_attends_to_a_patch(self):
        self.patches.Direction, self.patches.Patch, self.patches.PatchPicture = "To", [1, 3], 1  # of the square
        first = by_hand.FIRST[1] + 8
        column = by_hand.weights(0, 0)[:, first]
        heats = numpy.concatenate([heat.ravel() for heat in self.heat()])
        numpy.testing.assert_allclose(heats, column[1 : by_hand.FIRST[2]], atol=1e-6)
        self.assertAlmostEqual(self.on_words(), column[0] + column[by_hand.FIRST[2] :].sum(), places=6)

    def test_the_pictures_are_side_by_side(self):
        shown = data.image(self.patches, "PictureColor", port=3)[::-1]
        size = by_hand.TOKEN
        expected = numpy.full((4 * size, (4 + 1 + 5) * size, 3), 255, dtype="u1")
        for left, picture in zip((0, 5 * size), by_hand.pictures()):
            expected[: picture.shape[0], left : left + picture.shape[1]] = picture
        numpy.testing.assert_array_equal(shown, expected)
        self.patches.Picture = 1
        numpy.testing.assert_array_equal(data.image(self.patches, "PictureColor", port=3)[::-1], by_hand.pictures()[1])
        self.assertEqual(len(self.cells("Weight")), 15)

    def test_means_over_heads_and_layers(self):
        self.patches.Token, self.patches.Head, self.patches.MeanOfLayers = by_hand.DISC, -1, 1
        mean = numpy.mean([by_hand.weights(l, h)[by_hand.DISC] for l in range(2) for h in range(2)], axis=0)
        heats = numpy.concatenate([heat.ravel() for heat in self.heat()])
        numpy.testing.assert_allclose(heats, mean[1 : by_hand.FIRST[2]], atol=1e-6)

    def test_a_selected_word_is_chosen(self):
        self.patches.SelectedTokens = [by_hand.DISC]
        self.assertAlmostEqual(float(self.heat()[0].sum()), by_hand.SHARE, places=5)

    def test_figures(self):
        with Recording(self.path) as recording:
            self.assertTrue(recording.has_pictures)
            self.assertFalse(recording.has_images)
            figure = patches.one_head(recording, token=by_hand.DISC, arrows="None")
            axes = figure.axes[0]
            self.assertEqual(axes.get_title(loc="left"), "Layer 0, head 0: what \u201cdisc\u201d attends to; 20% on words")
            shown = axes.images[0].get_array()
            size = by_hand.TOKEN
            numpy.testing.assert_allclose(shown[:, 4 * size : 5 * size], 1)  # white between pictures
            ground = numpy.array((235, 235, 225)) / 255
            for row, column, share in ((0, 0, 1), (3, 3, 0)):  # a corner without paint
                heat = numpy.array(patches._HEAT(float(share))[:3])
                corner = shown[row * size, column * size + (size - 1 if column else 0)]
                numpy.testing.assert_allclose(corner, 0.5 * ground + 0.5 * heat, atol=0.01)
            self.assertEqual(len(patches.all_heads(recording, token=by_hand.SQUARE).axes[0].images), 4)


    def test_tokens_of_pictures_of_transformers(self):
        """Which tokens are squares, from grids as Qwen2-VL's processor makes them, and of LLaVA's equal pictures."""
        qwen = types.SimpleNamespace(
            model_type="qwen2_vl", image_token_id=7, video_token_id=8,
            vision_config=types.SimpleNamespace(spatial_merge_size=2),
        )
        grids = {"image_grid_thw": numpy.array([[1, 2, 4], [1, 4, 2]]), "video_grid_thw": numpy.array([[2, 2, 2]])}
        found = record._places(qwen, [1, 7, 7, 2, 8, 8, 7, 7, 3], grids, 16)
        self.assertEqual(found.tolist(), [
            [-1, 0, 0, -1, 2, 3, 1, 1, -1], [-1, 0, 0, -1, 0, 0, 0, 1, -1], [-1, 0, 1, -1, 0, 0, 0, 0, -1],
        ])
        self.assertIsNone(record._places(qwen, [1, 7, 2], grids, 16))
        llava = types.SimpleNamespace(model_type="llava", image_token_index=9)
        found = record._places(llava, [1, *[9] * 8, 2], {}, 2)
        self.assertEqual(found[0].tolist(), [-1, 0, 0, 0, 0, 1, 1, 1, 1, -1])
        self.assertEqual(found[1].tolist(), [-1, 0, 0, 1, 1, 0, 0, 1, 1, -1])
        self.assertEqual(found[2].tolist(), [-1, 0, 1, 0, 1, 0, 1, 0, 1, -1])
        for ids, images in (([1, *[9] * 6, 2], 2), ([1, 2], 0)):
            self.assertIsNone(record._places(llava, ids, {}, images))
        self.assertIsNone(record._places(types.SimpleNamespace(model_type="llama"), [1, 2, 3], {}, 0))
