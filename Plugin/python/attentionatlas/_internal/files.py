"""Files that appear complete or not at all."""

import contextlib
import pathlib
from collections.abc import Iterator


@contextlib.contextmanager
def complete(path: pathlib.Path) -> Iterator[pathlib.Path]:
    """A temporary name beside a path; the file that is written under it gets its name at the end of `with`."""
    temporary = path.with_name(f"{path.stem}.part{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
