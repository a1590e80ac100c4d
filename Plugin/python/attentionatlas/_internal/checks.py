"""Whether options are in their ranges."""


def check(name: str, value: float, low: float, high: float, unit: str = "") -> None:
    """Raises ValueError for a value that is no number or out of range."""
    if isinstance(value, str):
        raise ValueError(f"{name}: expected {low} to {high} {unit}".rstrip() + f", found '{value}'.")
    if not low <= value <= high:
        raise ValueError(f"{name}: expected {low} to {high} {unit}".rstrip() + f", found {value:g}.")


def check_page(width_mm: float, font_size: float | None) -> None:
    """Raises ValueError for a width or a size of letters, which may be None, that no figure has."""
    check("width-mm", width_mm, 30, 1000, "millimetres")
    if font_size is not None:
        check("font-size", font_size, 3, 72, "points")


def no_points(kind: str) -> ValueError:
    """What is wrong with data without points that are to be shown. kind: their class."""
    found = (kind or "no data").removeprefix("vtk")
    return ValueError(f"display: expected a source with points, found none ({found}). A table has rows instead.")
