"""Settings objects, and how a name in a scenario file becomes one.

Partitions, arrival processes, buffers and policies are all the same kind of thing: a small frozen object that is
picked by name (`kind = "digits"`) and carries its own fields. A name is looked up among ours, then among
installed entry points (`feelstream.policies`, …), then as `package.module:Class` or `path/to/file.py:Class`.

No other code asks for that name. What it must know of a plug-in are its traits: attributes that the class at the base
of the kind names, where they say nothing unless a class states more. run.json stores them beside the name (as
`promises`), so that a run is understood without the code that made it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib.metadata import entry_points
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    model_serializer,
)
from pydantic_core.core_schema import (
    CoreSchema,
    no_info_after_validator_function,
    plain_serializer_function_ser_schema,
    simple_ser_schema,
    str_schema,
    with_info_before_validator_function,
    with_info_wrap_validator_function,
)

from feelstream import code
from feelstream.errors import ScenarioError, sentence_and_place
from feelstream.stored import Inert, StoredName, inert, refusal

LEAST, MOST = 1e-100, 1e100


class Magnitude:
    """Annotates a number: beyond these bounds nothing is meant, and products of a few fields would overflow."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(cls.checked, handler(source))

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "magnitude": [LEAST, MOST]}

    @staticmethod
    def checked(value: float) -> float:
        if value != 0 and not LEAST <= abs(value) <= MOST and not math.isinf(value):
            raise ValueError(f"must be of a magnitude between {LEAST:g} and {MOST:g}, not {value!r}")
        return value


Count = Annotated[int, Field(strict=True, ge=1, le=2**31 - 1)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False), Magnitude]
NonNegative = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False), Magnitude]
Fraction = Annotated[float, Field(strict=True, ge=0, le=1)]
Probability = Annotated[float, Field(strict=True, gt=0, le=1)]  # of what happens at some time


class Settings(BaseModel):
    """Frozen, with no field that is not declared."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), defer_build=True)

    def __dir__(self) -> list[str]:
        """Its own names, without the forty of pydantic's, among which nobody would find them."""
        return sorted(name for name in super().__dir__() if name.startswith("_") or not hasattr(BaseModel, name))


Trait = bool | int | float | list[str] | None


class Plugin(Settings):
    """A settings object picked by name. `tag` is that name, as its kind has it; any other class is named by where it
    lives.

    The class at the base of a kind says where a scenario names one, and which of its attributes are traits.
    """

    plugin_traits: ClassVar[tuple[str, ...]] = ()
    plugin_field: ClassVar[str] = ""  # of a scenario, where one is named
    contract: ClassVar[Mapping[str, Any]] = {}  # what comes out of each method (guard.py)
    tag_field: ClassVar[str] = "kind"
    tag: ClassVar[str] = ""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"self.{name} cannot be set: fields are settings, and memory is the state it returns")

    @classmethod
    def __pydantic_init_subclass__(cls, **more: Any) -> None:
        super().__pydantic_init_subclass__(**more)
        code.note(cls.__module__, cls)

    @classmethod
    def plugin_name(cls) -> str:
        return cls.__dict__.get("tag", "") or f"{cls.__module__}:{cls.__qualname__}"

    def stated_traits(self) -> dict[str, Trait]:
        """Its traits by name; sets in order."""
        found = {name: getattr(self, name) for name in self.plugin_traits}
        return {name: sorted(is_) if isinstance(is_, frozenset | set) else is_ for name, is_ in found.items()}

    def plugin_versions(self) -> dict[str, str]:
        """Packages beyond ours that its numbers depend on, with their versions: part of what decides a run."""
        return {}

    @model_serializer(mode="wrap")
    def _named(self, fields: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {self.tag_field: self.plugin_name(), **fields(self)}


class Named:
    """Base of what is asked, by a name, and has no settings: often made of a user's function."""

    plugin_field: ClassVar[str]
    contract: ClassVar[Mapping[str, Any]]  # as of a Plugin
    name: str = ""  # as the scenario has it

    def plugin_name(self) -> str:
        return self.name or type(self).__name__


def as_table(given: Mapping[str, Any] | Settings) -> Mapping[str, Any]:
    """Settings as a table of their fields, in which a plug-in is named by its class: it need not have another name."""
    if not isinstance(given, Settings):
        return given
    fields = {name: getattr(given, name) for name in type(given).model_fields} | (given.model_extra or {})
    return {given.tag_field: type(given), **fields} if isinstance(given, Plugin) else fields


class NamesCode:
    """Annotates a text field that may name code (a metric, a model). A name that was stored stays one, whatever else of
    the settings is changed; written out, it is plain text.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        as_text = plain_serializer_function_ser_schema(str, return_schema=str_schema())
        return with_info_wrap_validator_function(self._checked, handler(source), serialization=as_text)

    def _checked(self, value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> str:
        name = handler(value)
        if info.context is not None or isinstance(value, StoredName):
            return StoredName(name)
        self.instance(name)
        return name

    def instance(self, name: str) -> Any:
        """The object that a name stands for; ScenarioError where it stands for none."""


T = TypeVar("T")


def did_you_mean(name: str, known: list[str]) -> str:
    """A hint for a mistyped name, with a space behind it; empty where nothing known is close. `v` is close to `V`."""
    close = [other for other in known if other.lower() == name.lower()] or get_close_matches(name, known, 1)
    return f"did you mean '{close[0]}'? " if close else ""


def near_or_all(name: str, known: list[str], others: str = "") -> str:
    """The name that a mistyped one is close to, or else all that are allowed: a long list is for those alone."""
    return did_you_mean(name, known).rstrip() or f"allowed: {', '.join(known)}{others}"


def import_object(reference: str) -> Any:
    """The object that `package.module:Name` or `path/to/file.py:Name` stands for."""
    if isinstance(reference, StoredName):
        raise refusal(reference)
    where, _, attribute = reference.rpartition(":")
    if where.endswith(".py"):
        if not Path(where).is_file():
            raise ScenarioError(f"'{reference}': there is no file {where}")
        module = _guarded(reference, lambda: code.load(Path(where)))
    else:
        module = _guarded(reference, lambda: importlib.import_module(where))
    try:
        found = attrgetter(attribute)(module)
    except AttributeError:
        own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        near = f"; {near_or_all(attribute, own)}" if own else ""
        raise ScenarioError(f"'{reference}': {where} has no {attribute}{near}") from None
    code.note(where, found)
    return found


def name_of(given: Any) -> Any:
    """The name of a class or function of the user's own: where it lives. Whatever has no such place is as it was."""
    if isinstance(given, str) or not callable(given):
        return given
    module, name = getattr(given, "__module__", None), getattr(given, "__qualname__", None)
    if not (module and name) or "<" in name:
        raise ValueError(f"must be a name, or a function or class at the top of a module, not {given!r:.60}")
    return f"{module}:{name}"


def _guarded(reference: str, load: Callable[[], Any]) -> Any:
    """Whatever someone's own module raises becomes a sentence, SystemExit too; only the user may interrupt."""
    try:
        return load()
    except KeyboardInterrupt:
        raise
    except BaseException as problem:
        raise ScenarioError(f"'{reference}' cannot be imported: {in_a_sentence(problem)}") from problem


def in_a_sentence(problem: BaseException) -> str:
    """What went wrong in someone's own module, and in which line of which file if that is known."""
    return sentence_and_place(problem, __file__, code.__file__, "importlib")


class Kind(NamesCode, Generic[T]):
    """A kind of plug-in, such as policies or metrics: its base, those of ours by name, and how a name becomes one.

    It annotates the field of a scenario that picks one, as in `Annotated[Channel, CHANNELS]`: a table with a name in
    it, or a text where the kind is one of functions. Whoever needs all kinds finds them there (scenario/fields.py).

    Attributes:
        name: What one is called, as in `feelstream check --kind`.
        group: Of installed plug-ins: the entry points `feelstream.GROUP`.
        base: The class that states the contract.
        field: Of a scenario, where one is picked.
        takes_functions: Whether a function may stand for settings.
        tag_field: Of a kind of settings: what the field with the name is called.
        ours: In the order of the catalogue; the first is the default.
    """

    takes_functions = False

    def __init__(
        self,
        name: str,
        group: str,
        base: type,
        ours: Mapping[str, T] | None = None,
        of_function: Callable[[Any], Any] | None = None,
        is_one: Callable[[Any], bool] | None = None,
    ) -> None:
        """of_function: where one may be a function, what makes an object of the base of it. is_one: whether something
        may be one, if that is not to be told by base and function.
        """
        self.name, self.group, self.base = name, group, base
        self.field, self.tag_field = getattr(base, "plugin_field", ""), getattr(base, "tag_field", "")
        self.has_settings = issubclass(base, Plugin)
        self.ours: dict[str, T] = {}
        self.add(ours or {})
        self.of_function, self.is_one = of_function, is_one or self._fits

    def _fits(self, found: Any) -> bool:
        if isinstance(found, type):
            return issubclass(found, self.base)
        return self.of_function is not None and callable(found)

    def add(self, ours: Mapping[str, T]) -> None:
        self.ours |= ours
        for name, each in ours.items():
            if self.has_settings:
                cast(type[Plugin], each).tag = name

    @property
    def default(self) -> T:
        return next(iter(self.ours.values()))

    def chosen(self) -> Any:
        """What the field of a scenario that picks one is set to: by default the first of ours."""
        return Field(default_factory=lambda: cast(Callable[[], Any], self.default)())

    def names(self) -> list[str]:
        """Ours first, in the order of the catalogue, then installed ones."""
        theirs = sorted(point.name for point in entry_points(group=f"feelstream.{self.group}"))
        return [*self.ours, *(name for name in theirs if name not in self.ours)]

    def lookup(self, name: str | type) -> T:
        """What a name stands for; a class stands for itself."""
        if isinstance(name, type):
            if problem := self.why_not(name):
                raise ScenarioError(f"{name.__name__} {problem}")
            return cast(T, name)
        if name in self.ours:
            return self.ours[name]
        if isinstance(name, StoredName):
            raise refusal(name)
        found: Any = None
        for point in entry_points(group=f"feelstream.{self.group}", name=name):
            found = _guarded(name, point.load)
        if found is None and ":" in name:
            found = import_object(name)
        if found is None:
            if name.endswith(".py"):
                raise ScenarioError(f"'{name}' names a file alone; name the class in it too, as in {name}:Name")
            meant = near_or_all(name, self.names(), ", or one of your own as file.py:Name")
            raise ScenarioError(f"'{name}' is not known; {meant}")
        if problem := self.why_not(found):
            raise ScenarioError(f"'{name}' {problem}")
        if isinstance(found, type) and issubclass(found, Plugin) and found not in self.ours.values():
            found.tag = name  # so that a stored scenario finds it again; ours keep their names
        return cast(T, found)

    def instance(self, name: str) -> Any:
        """The object of that name that is asked; ScenarioError where a class cannot be made."""
        found = self.lookup(name)
        try:
            made: Any = found() if isinstance(found, type) else found
            one = made if self.of_function is None or isinstance(made, self.base) else self.of_function(made)
        except Exception as problem:  # a user's class may raise anything
            raise ScenarioError(f"'{name}' cannot be made without arguments: {in_a_sentence(problem)}") from problem
        one.name = name
        return one

    def why_not(self, found: Any) -> str:
        """What keeps an object from being one of this kind, as the rest of a sentence; empty where nothing does."""
        if not self.has_settings:
            return "" if self.is_one(found) else f"does not fulfil the contract of feelstream.{self.group}"
        base = _public_name(self.base)
        if not isinstance(found, type):
            return f"is not a class; it must be one derived from {base}"
        if not issubclass(found, self.base):
            return f"is not derived from {base}; write class {found.__name__}({base})"
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        return f"lacks {missing}, which every class of feelstream.{self.group} must have" if missing else ""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if not self.has_settings:
            return super().__get_pydantic_core_schema__(source, handler)
        as_it_is = simple_ser_schema("any")  # with the fields of its own class
        return with_info_before_validator_function(self._built, handler(source), serialization=as_it_is)

    def _built(self, value: Any, info: ValidationInfo) -> Any:
        """`{kind: "digits", per_device: 2}` → the settings of that name; without a name they are the default's.

        What is read from a stored run, so that nothing it names may be imported, has a context: the traits of its
        plug-ins, by group and name.
        """
        if not isinstance(value, Mapping):
            return value  # an object already, or something pydantic will refuse by its type
        tag_field, fields = self.tag_field, dict(value)
        name = fields.pop(tag_field, next(iter(self.ours)))
        if isinstance(name, type):
            cls = cast(type[Plugin], name)
            if issubclass(cls, Inert):
                return cls.model_construct(**fields)  # its own class knew which values are possible
        elif not isinstance(name, str):
            raise ScenarioError(f".{tag_field}: must be one of {', '.join(self.names())}, not {name!r}")
        elif info.context is not None and name not in self.ours:
            stored = info.context.get(self.group) if isinstance(info.context, Mapping) else None
            return inert(self.base, name, fields, stored, self.base.plugin_traits)
        try:
            cls = cast(type[Plugin], self.lookup(name))
        except ScenarioError as problem:
            raise ScenarioError(f".{tag_field}: {problem}") from problem
        for field in fields.keys() - cls.model_fields.keys():
            raise ScenarioError(f".{field}: there is no such field in {cls.plugin_name()}{self._instead(field, cls)}")
        return cls.model_validate(fields, context=info.context)

    def _instead(self, field: str, cls: type[Plugin]) -> str:
        """What may have been meant: one of the fields, or another policy, buffer, … that has the field."""
        known = [self.tag_field, *cls.model_fields]
        if cls.model_fields:
            return f"; {near_or_all(str(field), known)}"
        others = [other for other, cls in self.ours.items() if field in cast(type[Plugin], cls).model_fields]
        return f", which has none; it is one of {', '.join(others)}" if others else ", which has none"


def _public_name(base: type) -> str:
    """What users import a base class as: feelstream.Policy, or module.Name where the package does not export it."""
    return f"feelstream.{base.__name__}" if base.__name__ == "Policy" else f"{base.__module__}.{base.__name__}"
