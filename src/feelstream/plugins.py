"""Settings and plug-ins: frozen, validated objects that a scenario file picks by name."""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """A frozen group of settings; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Plugin(Settings):
    """Settings that choose one of several behaviours; `tag` is the name in the scenario file."""

    tag: ClassVar[str]
