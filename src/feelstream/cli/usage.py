"""What is wrong with a command line, in a sentence that says what to type instead."""

from __future__ import annotations

import re
from typing import Any

MEANT = {  # commands that other programs have
    "simulate": "run", "resume": "run", "start": "run", "train": "run", "plot": "report", "version": "--version",
    "show": "explain", "list": "presets", "ls": "presets", "fetch": "data", "download": "data",
    "data fetch": "get", "data download": "get", "data ls": "list", "data show": "list",
}  # fmt: skip
OF_STUDIES = {"reproduce", "leaderboard"}  # commands of feelstream-studies


def sentence(problem: Any) -> str:
    """The sentence for an error of typer's, with the command whose help says more."""
    words = problem.format_message().rstrip(".")
    said, context, kind = words, problem.ctx, type(problem).__name__
    if context is None:
        return words
    known = {name for parameter in context.command.params for name in parameter.opts if name.startswith("--")}
    if found := re.match(r"No such command '(.+?)'", words):
        said = _unknown_command(found[1], context)
    elif kind == "NoSuchOption":
        said = _unknown_option(problem.option_name, known)
    elif kind == "BadParameter" and problem.param is not None and problem.param.opts[0].startswith("-"):
        said = f"{problem.param.opts[0]}: {problem.message.rstrip('.')}"
    elif found := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)$", words):
        said = _extra_words(found[1], known)
    return f"{said}{'' if said.endswith('?') else ';'} see {context.command_path} --help"


def _unknown_command(name: str, context: Any) -> str:
    """Of the program itself or of a group such as `data`."""
    from feelstream.plugins import near_or_all
    from feelstream.studies.registry import APART

    path = f"{context.command_path.partition(' ')[2]} {name}".lstrip()
    if path in OF_STUDIES:
        return f"the command '{name}' is not installed; it comes with {APART}"
    if path == "sweep":
        return (
            "there is no command 'sweep'; values are swept by compare, as in feelstream compare tiny --vary V=0.01,0.1"
        )
    close = (
        f"did you mean '{MEANT[path]}'?" if path in MEANT else near_or_all(name, context.command.list_commands(context))
    )
    return f"there is no command '{path}'; {close}"


def _unknown_option(name: str, known: set[str]) -> str:
    """A near one, or the field of a scenario that was meant."""
    from feelstream.plugins import did_you_mean

    field = name.lstrip("-")
    if "--set" in known and field in _fields():
        return f"there is no option {name}; a field is set with --set, as in --set {field}=VALUE"
    return f"there is no option {name}; {did_you_mean(name, sorted(known))}".rstrip("; ")


def _extra_words(words: str, known: set[str]) -> str:
    """Words that belong to no option: fields without --set, policies with spaces between."""
    from feelstream.policies import POLICIES

    excess = f"'{words}' belongs to no option"
    if "--policy" in known and all(word.strip(",") in POLICIES.names() for word in words.split()):
        return f"{excess}; put commas between policies, as in --policy lyapunov,random"
    if "--set" in known and ("=" in words or re.fullmatch(r"[-+.\de]+", words)):
        return f"{excess}; a field is set with --set and without spaces, as in --set V=0.1"
    return excess


def _fields() -> set[str]:
    from feelstream.cli.catalogue import fields

    return {"policy"} | {name for field in fields() for name in (field, field.rpartition(".")[2])}
