"""The commands of attention-atlas that draw: pvpython -m attentionatlas COMMAND, as the program attention-atlas runs them.

figures chooses what to draw by what a file is. The other commands are those of their modules.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import importlib
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from attentionatlas._internal.files import keep_clean

#: Arguments of each command, as examples in its help.
EXAMPLES = {
    "figures": (
        "model.safetensors --only class-map,attention --format pdf -o figures",
        "recording.safetensors --layer 4 --head 11 -o figures",
        "recording.safetensors --only sentence --head 0,3,11 --hide-first",
        "recording.safetensors --only tokens --model gpt2/config.json",
        "protein.safetensors --only contacts,contact-heads --structure 1ubq.cif",
        'gpt2/config.json --text "John gave a drink to" -o figures',
        "corpus.safetensors --layer 4 --head 11 -o figures",
    ),
    "web": ("model.safetensors recording.safetensors -o page.html", "recording.safetensors --only map --head 11"),
    "attribution": (
        'gpt2 --clean "John and Mary went home. John called" --corrupted "Mary and John went home. Mary called" -o circuit',
    ),
    "article": ("-o article.html", "model.safetensors --no-pdf -o article.html"),
    "scene": ("recording.safetensors -o scene.pvsm", "gpt2/config.json -o circuits.pvsm"),
    "findings": ("-o findings", "--only grokking -o findings"),
}
#: Modules with figures of recordings, of language models and of corpora, beside those of the tour.
GROUPS = {
    "recording": ("heads", "sentence", "patches", "embedding", "focus", "tokens", "proteins"),
    "transformer": ("circuits",),
    "corpus": ("texts",),
}


def _module(name: str) -> Any:
    return importlib.import_module(f"attentionatlas.{name}")


def _actions(name: str) -> dict[str, argparse.Action]:
    """The options of the command line of a module, by name."""
    actions = _module(name)._parser()._actions
    return {option: action for action in actions for option in action.option_strings}


class _Arguments:
    """The arguments of figures: files, and options with their values, which the modules parse."""

    def __init__(self, parser: argparse.ArgumentParser, words: list[str]) -> None:
        known = {name: _actions(name) for name in ("tour", *sum(GROUPS.values(), ()))}
        self.files: list[str] = []
        self.options: list[tuple[str, list[str]]] = []
        self._known = known
        words = list(words)
        while words:
            word = words.pop(0)
            option, equals, value = word.partition("=")
            if not word.startswith("-") or word == "-":
                self.files.append(word)
                continue
            counts = [actions[option].nargs for actions in known.values() if option in actions]
            if not counts:
                parser.error(f"unrecognized option: {option}")
            self.options.append((option, [value] if equals else self._values(words, counts)))

    def _values(self, words: list[str], counts: list[Any]) -> list[str]:
        """Takes the values of an option from the words behind it."""
        if "+" in counts:
            options = set().union(*self._known.values())
            end = next((i for i, word in enumerate(words) if word.partition("=")[0] in options), len(words))
        else:
            end = max(1 if count is None else count for count in counts)
        values, words[:end] = words[:end], []
        return values

    def of(self, name: str) -> list[str]:
        """The options that a module knows, as it parses them."""
        return [word for option, values in self.options if option in self._known[name] for word in (option, *values)]

    def only_of(self, name: str, other: str) -> bool:
        """Whether there is an option of a module that another one does not know."""
        return any(option in self._known[name] and option not in self._known[other] for option, _ in self.options)

    def lacks(self, name: str) -> bool:
        """Whether a module needs an option that is not there, or one of several."""
        given = {option for option, _ in self.options}
        some = set(getattr(_module(name), "NEEDS", given))
        missing = any(action.required and option not in given for option, action in self._known[name].items())
        return missing or bool(some) and not given & some

    def unused(self, names: list[str]) -> list[str]:
        """The options that no module of these knows."""
        return [option for option, _ in self.options if not any(option in self._known[name] for name in names)]


def _figures_parser() -> argparse.ArgumentParser:
    """The help of figures. Modules parse the options themselves."""
    parser = argparse.ArgumentParser(
        prog="attention-atlas figures",
        description="Renders the figures of small models, of recordings and of language models, which their config.json "
        "names, and a page that shows them; and those of statistics of a corpus.",
        usage="attention-atlas figures [OPTION...] FILE...",
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="a model, a recording, the config.json of a language model, or a corpus")
    parser.add_argument("--list", action="store_true", help="list the figures and exit")
    seen = {"-h", "--help", "--recording", "--transformer"}
    titles = {"tour": "all figures", **{name: f"figures named {name}" for names in GROUPS.values() for name in names}}
    for name, title in titles.items():
        group = parser.add_argument_group(title)
        for option, action in _actions(name).items():
            if option not in seen:
                seen.update(action.option_strings)
                action = copy.copy(action)
                action.option_strings = list(action.option_strings)
                action.required = False
                group._group_actions.append(action)
    return parser


def _list() -> None:
    """Prints the names for --only."""
    from attentionatlas._internal.catalogue import FIGURES

    print("of a small model:")
    for name, figure in FIGURES.items():
        print(f"  {name:24}{figure.title}")
    for kind, title in (("recording", "of a recording"), ("transformer", "of a language model"), ("corpus", "of a corpus")):
        print(f"{title}:")
        for name in GROUPS[kind]:
            print(f"  {name:24}{_module(name)._parser().description}")
            for single, about in getattr(_module(name), "FIGURES", {}).items():
                if single != name:
                    print(f"    {single:22}{about.title}")


def _draw(names: list[str] | None, files: dict[str, list[str]], arguments: _Arguments) -> None:
    """Draws the figures with these names, or those of the tour and of modules for which there are options."""
    from attentionatlas._internal.catalogue import FIGURES
    from attentionatlas.tour import stems_of

    groups = [name for kind, group in GROUPS.items() if files[kind] for name in group]
    named = {figure: name for name in groups for figure in getattr(_module(name), "FIGURES", {})}
    only: dict[str, list[str]] = {}  # single figures of modules
    of_focus: dict[str, Any] = {}
    if names is None:
        chosen = [name for name in groups if arguments.only_of(name, "tour") and not arguments.lacks(name)]
        of_corpora = GROUPS["corpus"] if files["corpus"] else ()  # of which the tour has none
        chosen += [name for name in of_corpora if name not in chosen]
        calls = [("tour", _of_tour(files))] if any(paths for kind, paths in files.items() if kind != "corpus") else []
        if "focus" in chosen:
            # The tour draws these figures, with their options.
            chosen.remove("focus")
            of_focus = _module("focus").own_options([files["recording"][0], *arguments.of("focus")])
    else:
        known = [*(FIGURES if files["model"] else ()), *groups]
        for name in names:
            if name not in known and name not in named:
                raise SystemExit(f"--only: expected some of {', '.join(dict.fromkeys([*known, *named]))}; found '{name}'.")
            if name not in known:
                only.setdefault(named[name], []).append(name)
        chosen = [name for name in groups if name in names or name in only]
        only = {name: figures for name, figures in only.items() if name not in names}
        tours = [name for name in names if name in known and name not in groups]
        calls = [("tour", [*files["model"], "--only", ",".join(tours)])] if tours else []
    for name in chosen:
        paths = files[next(kind for kind, group in GROUPS.items() if name in group)]
        calls += [(name, [path]) for path in paths]
    try:
        stems_of([path for paths in files.values() for path in paths])
    except ValueError as error:
        raise SystemExit(str(error)) from error
    unused = arguments.unused([name for name, _ in calls] + ["focus"] * bool(of_focus))
    if unused:
        raise SystemExit(f"{unused[0]}: none of the chosen figures takes it; see --only.")
    given = dict(arguments.options)
    for name, words in calls:
        try:
            is_of_one_head = name in GROUPS["recording"] and name != "proteins"  # which show the mean of all
            if is_of_one_head and not given.keys() & {"--layer", "--head"}:
                words += _head_of(words[0], *given.get("--sequence", ["0"]))
            more: dict[str, Any] = {"of_focus": of_focus} if name == "tour" and of_focus else {}
            more.update({"only": only[name]} if name in only else {})
            _module(name).main([*words, *arguments.of(name)], **more)
        except SystemExit as reason:
            if names is not None or name in ("tour", *GROUPS["corpus"]):
                raise
            print(f"  omitted: {name}: {reason}", file=sys.stderr)


@functools.cache
def _head_of(recording: str, sequence: str) -> list[str]:
    """The options that show the head of a recording with most to see."""
    from attentionatlas._internal.recording import first_head

    try:
        chosen: int | str = 0 if sequence == "all" else sequence if sequence == "mean" else int(sequence)
        layer, head, reason = first_head(recording, chosen)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(reason, file=sys.stderr)
    return ["--layer", str(layer), "--head", str(head)]


def _of_tour(files: dict[str, list[str]]) -> list[str]:
    options = {"--recording": files["recording"], "--transformer": files["transformer"]}
    return [*files["model"], *(word for option, paths in options.items() for path in paths for word in (option, path))]


def figures(words: list[str]) -> None:
    """Draws the figures of files, by what they are."""
    parser = _figures_parser()
    if "-h" in words or "--help" in words:
        parser.print_help()
        raise SystemExit(0)
    if "--list" in words:
        _list()
        return
    arguments = _Arguments(parser, words)
    if not arguments.files:
        parser.error("expected a model, a recording, the config.json of a language model or a corpus, found none")
    only = [values[0] for option, values in arguments.options if option == "--only"]
    arguments.options = [(option, values) for option, values in arguments.options if option != "--only"]
    from attentionatlas._internal.readers import kind_of

    files: dict[str, list[str]] = {"model": [], **{kind: [] for kind in GROUPS}}
    for path in arguments.files:
        try:
            files[kind_of(path)].append(path)
        except (OSError, ValueError) as error:
            raise SystemExit(str(error)) from error
    _draw(only[-1].split(",") if only else None, files, arguments)


class _Display:
    """Lines as they are written: on a terminal those that count, such as "figure 3 of 12", are a bar in one line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._has_bar = False

    def write(self, text: str) -> int:
        for line in text.splitlines(keepends=True):
            counted = re.search(r"(\d+) of (\d+)", line)
            if counted:
                self._show(line.rstrip("\n"), int(counted[1]) - 1, int(counted[2]))
            elif line != "\n" or not self._has_bar:
                self.end()
                self._stream.write(line)
        return len(text)

    def _show(self, line: str, done: int, all_: int) -> None:
        full = 30 * done // max(all_, 1)
        bar = f"[{'#' * full}{'.' * (30 - full)}] {line}"
        self._stream.write(f"\r{bar[: shutil.get_terminal_size().columns - 1]}\33[K")
        self._stream.flush()
        self._has_bar = True

    def end(self) -> None:
        """Leaves no bar."""
        self._stream.write("\r\33[K" * self._has_bar)
        self._has_bar = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def _displayed() -> Iterator[None]:
    """Lines appear as they are printed, on a terminal as _Display writes them. The stream of pvpython keeps them, and
    does not know of terminals."""
    with os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8") as lines:
        display = _Display(lines)
        try:
            with contextlib.redirect_stdout(display if os.isatty(1) else lines):  # type: ignore[type-var]
                yield
        finally:
            display.end()


def _reason(end: SystemExit) -> str:
    """Why a command ends: of an error of the system the file and what is wrong with it."""
    error = end.__cause__
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror.lower()}."
    return str(end.code)


def main(arguments: list[str] | None = None) -> None:
    if arguments is None:
        keep_clean()
    # Both end the process at once, also within a filter; ParaView would print where it was.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    name, *words = sys.argv[1:] if arguments is None else arguments
    if name not in EXAMPLES:
        raise SystemExit(f"attention-atlas: unknown command '{name}': expected one of {', '.join(EXAMPLES)}.")
    try:
        command = figures if name == "figures" else _module("findings.__main__" if name == "findings" else name).main
    except ModuleNotFoundError as error:  # such as ParaView's
        raise SystemExit(f"attention-atlas {name}: {error}") from error
    try:
        with _displayed():
            command(words)
    except SystemExit as end:
        if end.code in (0, None) and ("-h" in words or "--help" in words):
            print("\nExamples:")
            for example in EXAMPLES[name]:
                print(f"  attention-atlas {name} {example}")
        elif isinstance(end.code, str):
            raise SystemExit(f"attention-atlas {name}: {_reason(end)}") from end
        raise


if __name__ == "__main__":
    main()
