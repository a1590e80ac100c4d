"""Headless Chromium for tests, driven through the pipe of its DevTools protocol."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
#: A graphics processor is not needed.
OPTIONS = [
    "--headless=new", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe",
]
#: For how long a page may do nothing, in seconds.
PATIENCE = 60
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36}
_KEYS.update(ArrowLeft=37, ArrowUp=38, ArrowRight=39, ArrowDown=40)
_SHIFT = 8


class Chromium:
    """A browser with one page, which is closed at the end of `with`."""

    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs, self._out = os.pipe()
        self._in, answers = os.pipe()
        command = [PROGRAM, *OPTIONS, f"--user-data-dir={self._profile.name}", "about:blank"]
        # The browser reads commands from 3 and answers on 4.
        redirected = ["bash", "-c", f'exec "$@" 3<&{theirs} 4>&{answers}', "chromium", *command]
        self._process = subprocess.Popen(
            redirected, pass_fds=(theirs, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(theirs)
        os.close(answers)
        self._rest, self._number, self._session, self.console = b"", 0, None, []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *error):
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def call(self, method, **parameters):
        """The result of a command; raises RuntimeError where it fails."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if answer.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                self.console.append(answer["params"])

    def _next(self):
        while b"\0" not in self._rest:
            read = os.read(self._in, 1 << 20)
            if not read:
                raise RuntimeError("Chromium ended.")
            self._rest += read
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def run(self, script):
        """The value of JavaScript in the page."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", "an exception"))
        return answer["result"].get("value")

    def wait(self, script):
        """The value of JavaScript as soon as it is true."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            value = self.run(script)
            if value:
                return value
            time.sleep(0.02)
        raise TimeoutError(f"{script}: still {value!r} after {PATIENCE} s.")

    def resize(self, width=1000, height=800, phone=False):
        """Gives the page a size; that of a phone has a touch screen."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)

    def prefer(self, theme):
        """Sets the theme of the system: light or dark."""
        feature = {"name": "prefers-color-scheme", "value": theme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def open(self, path, asks=""):
        """Opens a page and waits until it is drawn or has failed."""
        self.console.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=f"{pathlib.Path(path).as_uri()}#{asks}")
        self.wait("['ready', 'error'].includes(document.documentElement?.dataset.status)")
        self.settle()

    def settle(self):
        """Waits until what was asked for is on the screen."""
        frames = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
        try:
            self.run(frames)
        except RuntimeError as error:
            if "navigated" not in str(error):
                raise
            self.run(frames)  # of the page that was opened meanwhile

    def state(self, name):
        """A data attribute of the page."""
        return self.run(f"document.documentElement.dataset.{name} ?? null")

    def rectangle(self, selector):
        """Left, top, right and bottom of an element in the window, within its border."""
        return self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}), r = e.getBoundingClientRect();"
            "const [x, y] = [r.left + e.clientLeft, r.top + e.clientTop];"
            "return [x, y, x + e.clientWidth, y + e.clientHeight]; })()"
        )

    def point(self, x, y):
        """Moves the pointer."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, x, y):
        """Clicks the left button of the mouse."""
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def tap(self, x, y):
        """Taps a touch screen."""
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def press(self, key, shift=False):
        """Presses a key, by its name or letter."""
        parameters = {"key": key, "modifiers": _SHIFT * shift}
        if key in _KEYS:
            parameters.update(code=key, windowsVirtualKeyCode=_KEYS[key])
        else:
            parameters["text"] = key
        self.call("Input.dispatchKeyEvent", type="keyDown" if "text" in parameters else "rawKeyDown", **parameters)
        self.call("Input.dispatchKeyEvent", type="keyUp", **{**parameters, "text": ""})
        self.settle()

    def picture(self, path):
        """Writes what the window shows to a PNG file."""
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
