"""Make the moving picture of README.md and docs/studio.md: a race, exported as the studio exports it, frame by frame.

python docs/make_race.py        (needs playwright, Chromium and MNIST; about two minutes)
"""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from feelstream.run import simulate_in
from feelstream.scenario.files import preset
from feelstream.studio.saving import write_race

PICTURE = Path(__file__).parent / "figures" / "race.webp"
POLICIES = {"lyapunov": (), "random": (), "balanced_joint": ("policy.size=2",)}
WIDTH, HEIGHT, SCALE, QUALITY = (
    1180,
    900,
    0.75,
    62,
)  # of the page in pixels, of the picture against it, of its compression
FRAME_MS, LAST_MS = 420, 3500
MOST_BYTES = 2_000_000


def export(folder: Path) -> tuple[Path, int]:
    """The race as one HTML file, and the number of its rounds."""
    scenario = preset("paper-iid")
    for name, settings in POLICIES.items():
        simulate_in(folder / name, preset("paper-iid", [f"policy.name={name}", *settings]), seed=0)
    file = write_race([folder / name for name in POLICIES], folder / "race.html", "One world, three schedulers")
    return file, scenario.system.rounds


def frames(file: Path, rounds: int) -> list[Image.Image]:
    """Every round as the browser shows it, all of the same height."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(f"{file.as_uri()}#1")
        pictures = []
        for _ in range(rounds):
            pictures.append(Image.open(io.BytesIO(page.screenshot())).convert("RGB"))
            page.keyboard.press("ArrowRight")
        chromium.close()
    size = round(WIDTH * SCALE), round(HEIGHT * SCALE)
    return [picture.resize(size, Image.Resampling.LANCZOS) for picture in pictures]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, *others = frames(*export(Path(folder)))
    durations = [FRAME_MS] * len(others) + [LAST_MS]
    packed = io.BytesIO()  # the file is written when all of it is there: packing takes minutes and may be broken off
    first.save(
        packed,
        "WEBP",
        save_all=True,
        append_images=others,
        duration=durations,
        loop=0,
        quality=QUALITY,
        method=6,
        minimize_size=True,
    )
    size = len(packed.getvalue())
    if size > MOST_BYTES:
        raise SystemExit(f"the picture has {size} bytes; lower SCALE or QUALITY")
    PICTURE.write_bytes(packed.getvalue())
    print(PICTURE, size)


if __name__ == "__main__":
    main()
