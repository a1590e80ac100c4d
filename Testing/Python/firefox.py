"""Headless Firefox for tests, driven through WebDriver BiDi."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

try:
    import websocket
except ImportError:
    websocket = None

PROGRAM = shutil.which("firefox-esr") or shutil.which("firefox")
#: For how long the browser may do nothing, in seconds.
PATIENCE = 120
#: A graphics processor is not needed.
_SETTINGS = {
    "webgl.force-enabled": True,
    "gfx.webrender.software": True,
    "datareporting.policy.dataSubmissionEnabled": False,
}


class Firefox:
    """A browser with one page, which is closed at the end of `with`."""

    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in _SETTINGS.items()]
        pathlib.Path(self._profile.name, "user.js").write_text("".join(lines))
        options = ["--no-remote", "--profile", self._profile.name, "--remote-debugging-port", "0"]
        command = [PROGRAM, *options, "about:blank"]
        log = pathlib.Path(self._profile.name, "log.txt")
        with log.open("w") as written:
            self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=written)
        end = time.monotonic() + PATIENCE
        while not (found := re.search(r"WebDriver BiDi listening on (ws://\S+)\s", log.read_text())):
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"Firefox does not listen: {log.read_text()[-400:]}")
            time.sleep(0.05)
        self._number = 0
        self._socket = websocket.create_connection(f"{found[1]}/session", timeout=PATIENCE, suppress_origin=True)
        self.call("session.new", capabilities={})
        self._page = self.call("browsingContext.getTree")["contexts"][0]["context"]
        return self

    def __exit__(self, *error):
        self._socket.close()
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._profile.cleanup()

    def call(self, method, **parameters):
        """The result of a command; raises RuntimeError where it fails."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == self._number:
                if answer["type"] == "error":
                    raise RuntimeError(f"{method}: {answer['message']}")
                return answer["result"]

    def run(self, script):
        """The value of JavaScript in the page, which JSON can hold."""
        expression = f"Promise.resolve({script}).then(JSON.stringify)"
        answer = self.call("script.evaluate", expression=expression, target={"context": self._page}, awaitPromise=True)
        if answer["type"] != "success":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"].get("value", "null"))

    def open(self, path):
        """Opens a page and waits until it is drawn or has failed."""
        self.call("browsingContext.navigate", context=self._page, url=pathlib.Path(path).as_uri(), wait="complete")
        self.run(
            "new Promise(done => { const look = () => ['ready', 'error'].includes(document.documentElement.dataset.status)"
            " ? done(true) : setTimeout(look, 20); look(); })"
        )
