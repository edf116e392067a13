"""Pages made from the program itself at every build: policies from their docstrings, commands from their help."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import click
import typer.main
from mkdocs.structure.files import File, Files

from feelstream.cli import app
from feelstream.policies import POLICIES

sys.path.insert(0, str(Path(__file__).parents[1]))
from make_scenario import rows  # the same tables as on the page of scenario files


def on_files(files: Files, *, config: Any) -> Files:
    for name, content in {"policies": policies(), "command-line": commands()}.items():
        files.append(File.generated(config, f"reference/{name}.md", content=content))
    return files


def policies() -> str:
    """Each policy: what its class says, its fields, and the rule as its module states it."""
    parts = [
        "# Policies, one by one\n\nMade from the docstrings of the policies. "
        "[The catalogue](../policies.md) compares them at a glance; "
        "every field can be set with `--set policy.NAME=VALUE`, or by keyword in Python.",
    ]
    for tag, policy in POLICIES.ours.items():
        rule = (inspect.getmodule(policy).__doc__ or "").partition("\n")[2]
        paragraphs = [prose(text) for text in rule.strip("\n").split("\n\n")]
        parts += [f"## `{tag}`", prose(inspect.getdoc(policy) or ""), rows(policy), *paragraphs]
    return "\n\n".join(parts) + "\n"


def prose(paragraph: str) -> str:
    """A paragraph of a docstring: indented formulas as code, anything else as text in which no sign is Markdown's."""
    if paragraph.startswith("    "):
        return f"```text\n{dedent(paragraph).rstrip()}\n```"
    return re.sub(r"([\\*_$<\[])", r"\\\1", paragraph)


def commands() -> str:
    root = typer.main.get_command(app)
    parts = ["# Command line\n\nMade from the help of the commands: `feelstream COMMAND --help` says the same."]
    parts += described(root, "feelstream")
    return "\n\n".join(parts) + "\n"


def described(command: Any, name: str) -> Iterator[str]:
    context = click.Context(command, info_name=name)
    names = command.list_commands(context) if hasattr(command, "list_commands") else []
    inner = {child: command.get_command(context, child) for child in names}
    if not inner:
        usage = " ".join(piece for piece in command.collect_usage_pieces(context) if piece)
        yield f"## {name}"
        yield f"```text\n{name} {usage}\n```"
    if command.help and not inner:
        yield escaped(inspect.cleandoc(command.help).split("\f")[0])
    listed = [option(parameter, context) for parameter in command.params if not inner]
    if listed := [row for row in listed if row]:
        yield "| option | meaning |\n|---|---|\n" + "\n".join(listed)
    for child, its in inner.items():
        if not its.hidden:
            yield from described(its, f"{name} {child}")


def option(parameter: Any, context: click.Context) -> str:
    record = parameter.get_help_record(context)
    if record is None:
        return ""
    name, about = (re.sub(r"\s+", " ", text).strip().replace("|", "\\|") for text in record)
    return f"| `{name}` | {escaped(about)} |"


def escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("[", "\\[").replace("*", "\\*").replace("$", "\\$")
