"""What ParaView runs for attention-atlas view: it shows the views of a file in its window."""

import json
import os

from attentionatlas import scene
from paraview import simple


def main() -> None:
    """Shows the file and runs the prompts that the lines of ATLAS_VIEW name, in place of the view of a new window; ends
    ParaView with a word on the terminal if that cannot be."""
    file, *prompts = map(json.loads, os.environ["ATLAS_VIEW"].split("\n")[:-1])
    first, view = simple.GetLayout(), simple.GetActiveView()
    try:
        scene.build(file, prompts)
    except (OSError, ValueError) as error:
        os.write(2, f"attention-atlas view: {error}\n".encode())
        os._exit(1)
    simple.Delete(view)
    simple.RemoveLayout(first)


if __name__ == "__main__":
    main()
