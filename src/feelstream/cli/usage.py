"""What is wrong with a command line, in a sentence that says what to type instead."""

from __future__ import annotations

import re
from typing import Any

MEANT = {  # commands that other programs have
    "simulate": "run", "resume": "run", "start": "run", "train": "run", "plot": "report",
    "show": "explain", "list": "presets", "ls": "presets", "fetch": "data", "download": "data", "version": "--version",
}  # fmt: skip
MEANT_OF_DATA = {"fetch": "get", "download": "get", "ls": "list", "show": "list"}
OF_STUDIES = {"reproduce", "leaderboard"}  # commands of feelstream-studies
SWEEP = "values are swept by compare, as in feelstream compare tiny --vary V=0.01,0.1"


def sentence(problem: Any) -> str:
    """The sentence for an error of typer's, with the command whose help says more."""
    said = _about_command(problem) or _about_option(problem) or _about_value(problem) or _about_extra(problem)
    said = said or problem.format_message().rstrip(".")
    stop = "" if said.endswith("?") else ";"
    return f"{said}{stop} see {problem.ctx.command_path} --help" if problem.ctx else said


def _about_command(problem: Any) -> str:
    """A command that a group such as `data` does not have."""
    found = re.match(r"No such command '(.+?)'", problem.format_message())
    if not found or not problem.ctx:
        return ""
    from feelstream.plugins import near_or_all

    name, known = found[1], problem.ctx.command.list_commands(problem.ctx)
    meant = MEANT_OF_DATA.get(name)
    close = f"did you mean '{meant}'?" if meant in known else near_or_all(name, known)
    return f"there is no command '{problem.ctx.info_name} {name}'; {close}"


def _about_option(problem: Any) -> str:
    """An option that there is not: a near one, or the field of a scenario that was meant."""
    name = getattr(problem, "option_name", "")
    if type(problem).__name__ != "NoSuchOption":
        return ""
    from feelstream.plugins import did_you_mean

    known, field = _options(problem.ctx), name.lstrip("-")
    if "--set" in known and field in _fields():
        return f"there is no option {name}; a field is set with --set, as in --set {field}=VALUE"
    return f"there is no option {name}; {did_you_mean(name, sorted(known))}".rstrip("; ")


def _about_value(problem: Any) -> str:
    """A value that its option refused."""
    parameter = getattr(problem, "param", None)
    if parameter is None or type(problem).__name__ != "BadParameter" or not parameter.opts[0].startswith("-"):
        return ""
    return f"{parameter.opts[0]}: {problem.message.rstrip('.')}"


def _about_extra(problem: Any) -> str:
    """Words that belong to no option: fields without --set, policies with spaces between."""
    found = re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)\.?$", problem.format_message())
    if not found or not problem.ctx:
        return ""
    words, known = found[1].split(), _options(problem.ctx)
    excess = f"'{found[1]}' belongs to no option"
    from feelstream.policies import POLICIES

    if "--policy" in known and all(word.strip(",") in POLICIES.names() for word in words):
        return f"{excess}; put commas between policies, as in --policy lyapunov,random"
    if "--set" in known and ("=" in found[1] or re.fullmatch(r"[-+.\de]+", found[1])):
        return f"{excess}; a field is set with --set and without spaces, as in --set V=0.1"
    return excess


def _options(context: Any) -> set[str]:
    return {name for parameter in context.command.params for name in parameter.opts if name.startswith("--")}


def _fields() -> set[str]:
    from feelstream.cli.catalogue import fields

    return {"policy"} | {name for field in fields() for name in (field, field.rpartition(".")[2])}
