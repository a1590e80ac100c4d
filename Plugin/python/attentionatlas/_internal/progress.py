"""What a filter says while it runs: a bar by tqdm where that is installed; and Ctrl-C, which cancels it."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from attentionatlas._internal import host

#: Seconds before a bar appears.
_DELAY = 0.5


def _bar(what: str) -> Any:
    """A bar of tqdm from 0 to 1 for a terminal or a notebook; None without tqdm, and where nobody looks."""
    is_notebook = "ipykernel" in sys.modules
    if not what or not (is_notebook or getattr(sys.stderr, "isatty", lambda: False)()):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of notebooks without widgets, where a bar of letters does
            from tqdm.auto import tqdm
    except ImportError:
        return None
    form = "{desc}: {percentage:3.0f} %|{bar}| {elapsed}, {remaining} left{postfix}"
    return tqdm(total=1.0, desc=what, leave=False, delay=_DELAY, bar_format=form, disable=False)


class _Run:
    """The run of a filter and of those before it."""

    def __init__(self, algorithms: list[Any], bar: Any) -> None:
        self.is_interrupted = False
        self._bar = bar
        self._observers = [(one, one.AddObserver("ProgressEvent", self._report)) for one in algorithms]
        self._last = algorithms[-1] if algorithms else None

    def _report(self, algorithm: Any, _event: str) -> None:
        if self.is_interrupted:
            algorithm.SetAbortExecute(1)  # of the one that runs, which takes it back when it has stopped
        elif self._bar is not None and algorithm is self._last:
            self._bar.update(max(0.0, algorithm.GetProgress() - self._bar.n))

    def interrupt(self, _signal: int, _frame: Any) -> None:
        """A handler of SIGINT. An exception would end the process: VTK lets none pass."""
        self.is_interrupted = True

    def end(self) -> None:
        """Lets go of the filters."""
        for algorithm, observer in self._observers:
            algorithm.RemoveObserver(observer)
        if self._bar is not None:
            self._bar.close()


@contextlib.contextmanager
def watched(source: Any, what: str) -> Iterator[None]:
    """Shows how far a source is that runs within `with`, and raises KeyboardInterrupt at its end if Ctrl-C has canceled it.

    what: the name of the bar; none without a name. A handler of SIGINT that is not Python's own stays.
    """
    run = _Run(host.algorithms(source), _bar(what))
    takes_keys = (
        threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if takes_keys:
        signal.signal(signal.SIGINT, run.interrupt)
    try:
        yield
    finally:
        if takes_keys:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run.end()
        if run.is_interrupted:
            raise KeyboardInterrupt
