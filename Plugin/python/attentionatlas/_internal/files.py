"""Files that appear complete or not at all."""

import contextlib


@contextlib.contextmanager
def complete(path):
    """A temporary name beside a path; the file that is written under it gets its name at the end of `with`."""
    temporary = path.with_name(f"{path.stem}.part{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
