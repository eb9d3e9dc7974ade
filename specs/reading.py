"""One model of a document, from which both its reader and its JSON schema come.

A model is a frozen dataclass. Its annotations say what a field holds: text, whole numbers, true or false, one of an
enumeration, lists (`tuple[X, ...]`), objects (`Mapping[str, X]`), further models, or null. What they can't say stands
in the field's metadata (`told`). So what the schema forbids the reader refuses, and the other way round; every refusal
is one sentence with the place, what was expected, and the nearest word that is known.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from specs.errors import InorderError, UsageError
from specs.history.columns import LARGEST, SMALLEST

M = TypeVar("M")
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TOLD = "told"
_AS_USUAL = object()
_FEW = 8
"""So many words are all named in a sentence."""
_PLAIN: Mapping[Any, tuple[str, str]] = {
    int: ("a whole number", "integer"),
    str: ("text", "string"),
    bool: ("true or false", "boolean"),
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a field's annotation can't say.

    least, most: the smallest number, and the largest. fewest: how many a list has at least. choices: the words that it,
    its items or its values may be; keys: those that an object may have. absent: what is meant where the document lacks
    the field, if that is not the model's default. reads, schema: of a field that is read by a function of its own,
    which is given the value and its place.
    """

    doc: str = ""
    least: int | None = None
    most: int | None = None
    fewest: int = 0
    choices: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    absent: Any = _AS_USUAL
    reads: Callable[[Any, str], Any] | None = None
    schema: Callable[[], dict[str, Any]] | None = None


def told(doc: str = "", **more: Any) -> dict[str, Any]:
    """Metadata for a model's field; see `Told`."""
    return {_TOLD: Told(doc, **more)}


@dataclass(frozen=True, slots=True)
class _Known:
    """A field, ready to be read."""

    name: str
    hint: Any
    told: Told
    default: Any
    required: bool


_KNOWN: dict[Any, Mapping[str, _Known]] = {}


def _known(model: type[Any]) -> Mapping[str, _Known]:
    if model not in _KNOWN:
        _KNOWN[model] = _look_at(model)
    return _KNOWN[model]


def _look_at(model: type[Any]) -> Mapping[str, _Known]:
    hints = get_type_hints(model)
    found = {}
    for field in fields(model):
        said: Told = field.metadata.get(_TOLD, Told())
        default = said.absent if said.absent is not _AS_USUAL else _default(field)
        required = default is MISSING
        found[field.name] = _Known(field.name, hints[field.name], said, default, required)
    return found


def _default(field: Field[Any]) -> Any:
    return field.default_factory() if field.default_factory is not MISSING else field.default


# ---------------------------------------------------------------- reading


def read(
    model: type[M],
    data: Any,
    where: str,
    *,
    error: type[InorderError] = UsageError,
    besides: Iterable[str] = (),
) -> M:
    """The model's instance that the document says. besides: fields that somebody else has read.

    Raises `error` for an unknown field, one that is missing, or a value that is none.
    """
    source = an_object(data, where, error)
    known = _known(model)
    only(source, [*besides, *known], where, error)
    values = {}
    for field in known.values():
        if field.name in source:
            values[field.name] = _value(field, source[field.name], where, error)
        elif field.required:
            raise error(f"{where}: the field {field.name!r} is missing")
        else:
            values[field.name] = field.default
    return model(**values)


def an_object(data: Any, where: str, error: type[InorderError] = UsageError) -> Mapping[str, Any]:
    """Raises `error` for anything else."""
    if not isinstance(data, Mapping):
        raise error(f"{where} must be a JSON object")
    return data


def only(
    source: Mapping[str, Any],
    known: Iterable[str],
    where: str,
    error: type[InorderError] = UsageError,
) -> None:
    """Raises `error` for a field that is not among those that are known."""
    names = list(known)
    for name in source:
        if name not in names:
            raise error(f"{where}: unknown field {name!r}{near(name, names)}")


def near(name: object, known: Iterable[str]) -> str:
    """The nearest word, as the end of a sentence; nothing where none is near."""
    close = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def value_of(
    source: Mapping[str, Any],
    name: str,
    hint: Any,
    where: str,
    said: Told | None = None,
    *,
    error: type[InorderError] = UsageError,
) -> Any:
    """One field of an object that is no model, and that has to be there. Raises `error`."""
    if name not in source:
        raise error(f"{where}: the field {name!r} is missing")
    return _value(_Known(name, hint, said or Told(), None, True), source[name], where, error)


def _value(field: _Known, value: Any, where: str, error: type[InorderError]) -> Any:
    if field.told.reads is not None:
        try:
            return field.told.reads(value, f"{where}, {field.name}")
        except InorderError as raised:
            raise error(str(raised)) from raised
    return _of(field.hint, value, _Place(field, where, error))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a value stands, for the sentence that refuses it."""

    field: _Known
    where: str
    error: type[InorderError]

    def refuse(self, words: str) -> InorderError:
        return self.error(f"{self.where}: {self.field.name!r} must {words}")


def _of(hint: Any, value: Any, place: _Place) -> Any:
    hint, or_null = _without_null(hint)
    if value is None and or_null:
        return None
    if hint is Any:
        return value
    if hint in _PLAIN:
        return _plain(hint, value, place, or_null)
    origin = get_origin(hint)
    if origin is tuple:
        return _list(get_args(hint)[0], value, place)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(get_args(hint)[1], value, place, or_null)
    if is_dataclass(hint):
        inner = f"{place.where}, {place.field.name}"
        return read(hint, value, inner, error=place.error)  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, Enum):
        words = place.field.told.choices or tuple(str(each.value) for each in hint)
        return hint(_one_of(words, value, place))
    raise TypeError(f"a model's field can't be {hint}")


def _plain(hint: Any, value: Any, place: _Place, or_null: bool) -> Any:
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise place.refuse(f"be {_PLAIN[hint][0]}{' or null' if or_null else ''}")
    least, most = place.field.told.least, place.field.told.most
    if hint is int and most is not None and value > most:
        raise place.refuse(f"be at most {most}")
    if hint is int and least is not None and value < least:
        raise place.refuse("not be negative" if least == 0 else f"be at least {least}")
    if hint is int and not SMALLEST <= value <= LARGEST:
        raise place.refuse(f"fit into 64 bits ({SMALLEST} to {LARGEST})")
    if hint is str and not _is_unicode(value):
        raise place.refuse("be text: half of a surrogate pair is no character")
    return _one_of(place.field.told.choices, value, place) if hint is str else value


def _is_unicode(value: str) -> bool:
    """JSON can spell what no file and no column of text can hold, as in "\\ud800"."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _one_of(choices: tuple[str, ...], value: Any, place: _Place) -> Any:
    if choices and value not in choices:
        if len(choices) > _FEW:
            raise place.error(
                f"{place.where}: {place.field.name} names the unknown word {value!r}"
                f"{near(value, choices)}"
            )
        raise place.error(
            f"{place.where}: {place.field.name} must be one of {', '.join(choices)}, not {value!r}"
        )
    return value


def _list(item: Any, value: Any, place: _Place) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise place.refuse(f"be {_list_of(item)}")
    if len(value) < (fewest := place.field.told.fewest):
        raise place.refuse(f"hold at least {'one' if fewest == 1 else fewest}")
    if is_dataclass(item):
        inner = [f"{place.where}, {place.field.name}[{number}]" for number in range(len(value))]
        pairs = zip(value, inner, strict=True)
        return tuple(_item(item, each, at, place.error) for each, at in pairs)
    if item in _PLAIN and not all(
        isinstance(each, item) and not (item is int and isinstance(each, bool)) for each in value
    ):
        raise place.refuse(f"be {_list_of(item)}")
    return tuple(_of(item, each, place) for each in value)


def _item(model: Any, value: Any, where: str, error: type[InorderError]) -> Any:
    own = getattr(model, "from_json", None)
    return own(value, where) if own is not None else read(model, value, where, error=error)


def _list_of(item: Any) -> str:
    return {str: "a list of text", int: "a list of whole numbers"}.get(item, "a list")


def _mapping(item: Any, value: Any, place: _Place, or_null: bool) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise place.refuse(f"be an object{' or null' if or_null else ''}")
    keys = place.field.told.keys
    for name in value:
        if keys and name not in keys:
            raise place.error(
                f"{place.where}: {place.field.name} names the unknown word {name!r}{near(name, keys)}"
            )
    return {str(name): _of(item, each, place) for name, each in value.items()}


def _without_null(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    others = [each for each in get_args(hint) if each is not type(None)]
    if len(others) != 1:
        raise TypeError(f"a model's field can't be {hint}")
    return others[0], True


# ---------------------------------------------------------------- versions


def version_of(
    source: Mapping[str, Any], newest: str, where: str, error: type[InorderError] = UsageError
) -> int:
    """The version that the document's `schema` names. newest: the schema that is written, as `inorder/run/v2`.

    Raises `error` for a newer version, and for what is no such document.
    """
    kind, _, last = newest.rpartition("/v")
    versions = {f"{kind}/v{number}": number for number in range(1, int(last) + 1)}
    schema = source.get("schema")
    found = versions.get(schema) if isinstance(schema, str) else None
    if found is None:
        known = f"{kind}/v1 to v{last}" if int(last) > 1 else repr(newest)
        newer = isinstance(schema, str) and schema.startswith(f"{kind}/v")
        mend = "; a newer inorder wrote it" if newer else ""
        raise error(f"{where} has schema {schema!r}; this version reads {known}{mend}")
    return found


# ---------------------------------------------------------------- schemas


def document_schema(model: type[Any], name: str, title: str = "") -> dict[str, Any]:
    """The JSON schema of a whole document, whose `schema` is its name; draft 2020-12."""
    found = schema_of(model)
    found["properties"] = {"schema": {"const": name}, **found["properties"]}
    found["required"] = ["schema", *found.get("required", [])]
    return {"$schema": DRAFT, "$id": name, **({"title": title} if title else {}), **found}


def schema_of(model: type[Any]) -> dict[str, Any]:
    """The JSON schema of a model, or of one that makes its own (`json_schema`)."""
    own = getattr(model, "json_schema", None)
    if own is not None:
        return dict(own())
    known = _known(model).values()
    found: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: _field_schema(field) for field in known},
    }
    if required := [field.name for field in known if field.required]:
        found["required"] = required
    return found


def field_schema(hint: Any, said: Told) -> dict[str, Any]:
    """The JSON schema of what `value_of` takes."""
    return _hint_schema(hint, said)


def _field_schema(field: _Known) -> dict[str, Any]:
    own = field.told.schema
    found = own() if own is not None else _hint_schema(field.hint, field.told)
    return {**found, "description": field.told.doc} if field.told.doc else found


def _hint_schema(hint: Any, said: Told) -> dict[str, Any]:
    hint, or_null = _without_null(hint)
    if hint is Any:
        return {}
    if hint in _PLAIN:
        name = _PLAIN[hint][1]
        found: dict[str, Any] = {"type": [name, "null"] if or_null else name}
        if hint is int:
            found["minimum"] = SMALLEST if said.least is None else said.least
            found["maximum"] = LARGEST if said.most is None else said.most
        if hint is str and said.choices:
            found = {"enum": list(said.choices)}
        return found
    origin = get_origin(hint)
    if origin is tuple:
        listed: dict[str, Any] = {"type": "array", "items": _hint_schema(get_args(hint)[0], said)}
        return {**listed, "minItems": said.fewest} if said.fewest else listed
    if isinstance(origin, type) and issubclass(origin, Mapping):
        found = {"type": ["object", "null"] if or_null else "object"}
        if said.keys:
            found["propertyNames"] = {"enum": list(said.keys)}
        inner = _hint_schema(get_args(hint)[1], said)
        return {**found, "additionalProperties": inner} if inner else found
    if is_dataclass(hint):
        return schema_of(hint)  # type: ignore[arg-type]
    return {"enum": list(said.choices or (str(each.value) for each in hint))}
