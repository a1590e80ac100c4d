"""Models over time: several files, a .series file, and the training step of a checkpoint."""

import json

import atlastest
from atlastest import AtlasTest, point_arrays, torus
from paraview import simple


class Series(AtlasTest):
    def expect_classes_over_time(self, model, times):
        """Expects that the class map follows the models `slow` and `trained` at two times."""
        self.assertEqual(list(model.TimestepValues), times)
        source = torus(model)
        scene = simple.GetAnimationScene()
        scene.UpdateAnimationUsingDataTimeSteps()
        self.assertEqual(list(simple.GetTimeKeeper().TimestepValues), times)
        files = (atlastest.SLOW, atlastest.TRAINED)
        expected = [point_arrays(torus(atlastest.read_model(file))) for file in files]
        self.assertNotEqual(expected[0]["Class"].tobytes(), expected[1]["Class"].tobytes())
        for time, arrays in (*zip(times, expected), (times[0], expected[0])):
            scene.AnimationTime = time
            self.assert_same_arrays(point_arrays(source, time), arrays)

    def test_steps_of_checkpoints(self):
        files = atlastest.checkpoints(atlastest.OUTPUT)
        model = simple.AttentionOnlyModelReader(FileNames=files)
        self.expect_classes_over_time(model, [100, 250])
        model = simple.AttentionOnlyModelReader(FileNames=files[1:])
        model.UpdatePipelineInformation()
        self.assertEqual(list(model.TimestepValues), [250])

    def test_files_without_steps(self):
        files = [str(atlastest.SLOW), str(atlastest.TRAINED)]
        model = simple.AttentionOnlyModelReader(FileNames=files)
        self.expect_classes_over_time(model, [0, 1])

    def write_series(self):
        """A .series file that gives the files times of its own."""
        path = atlastest.OUTPUT / "training.safetensors.series"
        files = [{"name": str(atlastest.SLOW), "time": 0.5}, {"name": str(atlastest.TRAINED), "time": 4}]
        path.write_text(json.dumps({"file-series-version": "1.0", "files": files}))
        return str(path)

    def test_series_file(self):
        path = self.write_series()
        for read in (lambda path: simple.AttentionOnlyModelReader(FileNames=[path]), simple.OpenDataFile):
            self.start_session()
            model = read(path)
            self.assertEqual(model.GetXMLName(), "AttentionOnlyModelReader")
            self.expect_classes_over_time(model, [0.5, 4])

    def test_animation_moves_the_picture(self):
        files = atlastest.checkpoints(atlastest.OUTPUT)
        view = atlastest.chart_view()
        simple.Show(torus(simple.AttentionOnlyModelReader(FileNames=files)), view)
        scene = simple.GetAnimationScene()
        scene.UpdateAnimationUsingDataTimeSteps()
        pictures = []
        for time in (100, 250, 100):
            scene.AnimationTime = time
            pictures.append(atlastest.picture(view, f"step-{time}"))
        self.assertGreater(atlastest.different_pixels(pictures[0], pictures[1]), 0.2)
        self.assertEqual(atlastest.different_pixels(pictures[0], pictures[2]), 0)
