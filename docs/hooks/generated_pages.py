"""Pages made from the program itself at every build: policies and contracts from docstrings, commands from help."""

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
from feelstream.testing import KINDS

sys.path.insert(0, str(Path(__file__).parents[1]))
from make_scenario import rows  # the same tables as on the page of scenario files


def on_files(files: Files, *, config: Any) -> Files:
    for name, content in {"policies": policies(), "contracts": contracts(), "command-line": commands()}.items():
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


def contracts() -> str:
    """Each kind of plug-in: the methods that its contract names, as the base class has them."""
    parts = [
        "# Contracts\n\nMade from the base classes: K devices, n of them scheduled, m classes. "
        "[How to write, check and use your own parts](../extending.md); [every class and field](api.md)."
    ]
    for name, kind in KINDS.items():
        base = kind.base
        methods = [method for method in base.contract if hasattr(base, method) and not method.startswith("__")]
        if not methods:  # a function: its page shows it
            continue
        shown = "\n".join(f"{method}{_signature(getattr(base, method))}" for method in methods)
        said = [f"- `{method}`: {prose(_first_line(getattr(base, method)))}" for method in methods]
        about = f"`{base.plugin_field}`, derived from `{base.__module__}.{base.__name__}`. {prose(_first_line(base))}"
        parts += [f"## {name.replace('_', ' ').capitalize()}", about, f"```text\n{shown}\n```", "\n".join(said)]
    return "\n\n".join(parts) + "\n"


def _signature(method: Any) -> str:
    """With its types, without self."""
    signature = inspect.signature(method)
    arguments = list(signature.parameters.values())[1:]
    return str(signature.replace(parameters=arguments)).replace("'", "")


def _first_line(documented: Any) -> str:
    return (inspect.getdoc(documented) or "").partition("\n")[0]


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
