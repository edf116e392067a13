"""Import this before torchvision: its builds for graphics cards cannot load their operators beside PyTorch's CPU build.

It then fails at its own import for want of two operators, which nothing here calls. Declaring their names is enough.
"""

from __future__ import annotations

from contextlib import suppress

import torch

LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
for name in ("nms", "qnms"):
    with suppress(RuntimeError):  # a build that has it
        LIBRARY.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
