"""The command that opens the studio (extra `studio`)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from feelstream import signals
from feelstream.errors import needed
from feelstream.terminal.common import number_option, out

app = typer.Typer()


@app.command()
def studio(
    stored: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR]...", help="Run directories or results to replay; default: a race."),
    ] = None,
    port: Annotated[
        int | None, number_option("--port", high=65535, help="Port on loopback; default: a free one.")
    ] = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address without opening a browser.")] = False,
    export: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the runs as one HTML file that plays them, then exit.")
    ] = None,
    follow: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Follow a run in progress, such as a deployment."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="With --export: the heading of the race.")] = None,
) -> None:
    """Watch schedulers race in the browser, on this machine only; or export a race as a file that plays by itself."""
    stored = [*(stored or []), *([follow] if follow is not None else [])]
    if export is not None:
        from feelstream.studio.saving import write_race

        out.print(str(write_race(stored, export, title)))
        return
    needed("nicegui", "studio", "NiceGUI, which the studio needs,")
    from feelstream.studio.server import serve

    def tell(address: str) -> None:
        print(f"The studio is at {address}\nThe address is for you alone; Ctrl-C ends the studio.", flush=True)

    with suppress(KeyboardInterrupt):  # how one ends it
        serve(stored, port, not no_open, tell)
    out.print("The studio has ended.")
    # A race, a save or an explanation may still be at work in a thread. Python would wait for some of them, and abort
    # where one is in compiled code; a run directory survives the end of the process.
    signals.exit_with(0)
