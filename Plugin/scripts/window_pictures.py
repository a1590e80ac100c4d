"""Pictures of ParaView's window, of a page and the article in a browser, and the animation: see pictures.py."""

import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

import numpy
from paraview import simple as s
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTATION = ROOT / "Plugin" / "Documentation"
DATA = ROOT / "Data"
MODEL = str(DATA / "trained-n5-h3.safetensors")
GPT2 = str(DATA / "recordings" / "gpt2-data-visualization.safetensors")
#: What the language model reads: its heads find what followed "of" and "king" before.
TEXT = "And Moses spake unto the king of Egypt, and Aaron spake unto the king of Egypt."


def save(path, image, most=150_000):
    """Writes an image; with 256 colors, if it takes more than `most` bytes otherwise."""
    path.parent.mkdir(exist_ok=True)
    image.convert("RGB").save(path, optimize=True)
    if path.stat().st_size > most:
        image.convert("RGB").quantize(256, kmeans=4, dither=Image.Dither.NONE).save(path, optimize=True)


def screen(file):
    """What an X server shows that keeps its screen in a file of the format XWD."""
    code = file.read_bytes()
    head = struct.unpack(">25I", code[:100])
    begin, width, height, stride = head[0] + 12 * head[19], head[4], head[5], head[12]
    rows = numpy.frombuffer(code, numpy.uint8, height * stride, begin).reshape(height, stride)
    return Image.fromarray(rows[:, : 4 * width].reshape(height, width, 4)[:, :, 2::-1])


def window(size=(1600, 1000)):
    """Takes a picture of ParaView's window as README's command opens it, on an X server of its own."""
    manager = s.servermanager.vtkSMProxyManager
    version = f"{manager.GetVersionMajor()}.{manager.GetVersionMinor()}.{manager.GetVersionPatch()}"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "ParaView").mkdir()
        (folder / "ParaView" / f"ParaView{version}.ini").write_text(
            f"[MainWindow]\nPosition=@Point(0 0)\nSize=@Size({size[0]} {size[1]})\n"
        )
        reading, writing = os.pipe()
        server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writing), "-screen", "0", f"{size[0]}x{size[1]}x24", "-fbdir", name]
            + ["-nocursor", "-noreset", "-nolisten", "tcp"],
            pass_fds=[writing],
        )
        display = os.read(reading, 16).decode().strip()
        places = dict.fromkeys(("XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "HOME"), name)
        paraview = subprocess.Popen(
            [os.environ["ATLAS_PROGRAM"], "view", DATA / "models" / "language-2", TEXT],
            env={**os.environ, **places, "DISPLAY": f":{display}"},
        )
        try:
            time.sleep(90)  # it shows nothing that says that it is done
            save(DOCUMENTATION / "window.png", screen(folder / "Xvfb_screen0"), 500_000)
        finally:
            for process in (paraview, server):
                process.kill()
                process.wait()


def training(frames=48):
    """Saves an animation of a small model that learns: its class map, and the same on the torus."""
    model = s.AttentionOnlyTraining()
    torus, pairs = s.AttentionTorus(Input=model, Quantities=["ClassColor"]), s.TokenPairs(Input=model)
    layout = s.CreateLayout()
    layout.SetSize(800, 400)
    flat, space = (s.CreateRenderView(OrientationAxesVisibility=0, CameraParallelProjection=1) for _ in range(2))
    s.AssignViewToLayout(view=flat, layout=layout, hint=0)
    s.AssignViewToLayout(view=space, layout=layout, hint=layout.SplitHorizontal(0, 0.54) + 1)
    s.Show(torus, flat)
    s.Show(pairs, flat).SetScalarBarVisibility(flat, False)
    s.Show(s.TorusDeformation(Input=torus), space).SetScalarBarVisibility(space, False)
    step = s.Text(Text="Step 0")
    shown = s.Show(step, space)
    shown.FontSize, shown.WindowLocation = 18, "Upper Center"
    for view in (flat, space):
        view.ViewTime = 0
        s.ResetCamera(view)
    space.CameraPosition = [f + d for f, d in zip(space.CameraFocalPoint, (3, -10, 8))]
    space.CameraViewUp = [0, 0, 1]
    scene = s.GetAnimationScene()
    scene.UpdateAnimationUsingDataTimeSteps()
    steps = list(model.TimestepValues)
    chosen = sorted({round(place) for place in numpy.geomspace(1, len(steps), frames)})
    images = []
    with tempfile.TemporaryDirectory() as folder:
        for place in chosen:
            scene.AnimationTime = steps[place - 1]
            step.Text = f"Step {steps[place - 1]:.0f}"
            path = os.path.join(folder, "frame.png")
            s.SaveScreenshot(path, layout, ImageResolution=(800, 400))
            images.append(Image.open(path).convert("RGB").quantize(128, dither=Image.Dither.NONE))
    pauses = [120] * (len(images) - 1) + [2500]
    images[0].save(
        DOCUMENTATION / "training.gif", save_all=True, append_images=images[1:], duration=pauses, loop=0, optimize=True
    )


def page():
    """Takes a picture of a page in a browser, with the data of a token pair."""
    sys.path.append(str(ROOT / "Testing" / "Python"))
    from attentionatlas import web
    from chromium import Chromium

    scenes = [
        web.torus(MODEL),
        web.deformed_torus(MODEL),
        web.sphere(MODEL),
        web.sentence(GPT2, layer=4, head=11),
        web.composition(DATA / "models" / "language-2" / "config.json"),
    ]
    with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
        file, taken = pathlib.Path(folder, "page.html"), pathlib.Path(folder, "page.png")
        web.page(scenes, file)
        browser.resize(1000, 700)
        browser.call(
            "Emulation.setDeviceMetricsOverride", width=1000, height=700, deviceScaleFactor=2, mobile=False
        )
        browser.open(file, "scene=1")
        browser.point(481, 417)  # a token pair at the left edge, whose box hides nothing
        browser.picture(taken)
        save(DOCUMENTATION / "gallery" / "page.png", Image.open(taken))


def article():
    """Takes a picture of a chapter of the live article, at three equally probable words."""
    sys.path.append(str(ROOT / "Testing" / "Python"))
    from attentionatlas import article
    from chromium import Chromium

    with tempfile.TemporaryDirectory() as folder, Chromium() as browser:
        file, taken = pathlib.Path(folder, "article.html"), pathlib.Path(folder, "article.png")
        article.write(file, pdf=False, states=False)
        browser.call(
            "Emulation.setDeviceMetricsOverride", width=1250, height=720, deviceScaleFactor=2, mobile=False
        )
        features = [{"name": "prefers-reduced-motion", "value": "reduce"}]
        browser.call("Emulation.setEmulatedMedia", features=features)
        browser.open(file, "chapter=sphere")
        browser.run("document.querySelector('[data-question=unsure] button').click()")
        time.sleep(2)  # until all pixels are drawn
        browser.picture(taken)
        save(DOCUMENTATION / "gallery" / "article.png", Image.open(taken))
