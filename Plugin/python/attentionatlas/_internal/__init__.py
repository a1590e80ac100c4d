"""What the modules of attentionatlas share. None of it imports a module of the package above."""
