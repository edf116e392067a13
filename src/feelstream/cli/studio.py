"""The command that opens the studio (extra `studio`)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from feelstream.errors import RunError
from feelstream.terminal.common import out

app = typer.Typer()


@app.command()
def studio(
    stored: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="A run directory or results to replay; default: a race.")
    ] = None,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port on loopback; default: a free one.")] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only print the address, open no browser.")] = False,
) -> None:
    """Watch schedulers race in the browser, on this machine only."""
    try:
        import nicegui  # noqa: F401
    except ImportError:
        raise RunError("the studio needs NiceGUI; install it with: pip install 'feelstream[studio]'") from None
    from feelstream.studio.server import serve

    def tell(address: str) -> None:
        print(f"The studio is at {address}\nThe address is for you alone; Ctrl-C ends the studio.", flush=True)

    with suppress(KeyboardInterrupt):  # how one ends it
        serve(stored, port, not no_open, tell)
    out.print("The studio has ended.", highlight=False)
