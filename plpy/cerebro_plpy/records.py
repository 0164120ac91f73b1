"""Data classes by the names that the standard library has for them, made without compiling
anything.

`dataclasses` compiles six methods for each class whenever it is imported: of a hundred classes that
takes a new session longer than all their modules. Here the methods are the same functions for every
class and read what its fields are. They do what the standard library says of the arguments that are
taken. Type checkers are shown the originals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import Field as Field
    from dataclasses import asdict as asdict
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import replace as replace
else:
    FIELDS = "__record_fields__"
    MISSING = object()

    class Field:
        """What is to be known of a field."""

        __slots__ = ("compare", "default", "default_factory", "metadata", "name", "type")

        def __init__(
            self, default: Any, default_factory: Any, compare: bool, metadata: dict[str, Any]
        ) -> None:
            self.default, self.default_factory = default, default_factory
            self.compare, self.metadata = compare, metadata

    def field(
        *,
        default: Any = MISSING,
        default_factory: Any = MISSING,
        compare: bool = True,
        metadata: Any = None,
    ) -> Field:
        """What is to be known of a field beside its name and type."""
        return Field(default, default_factory, compare, metadata or {})

    def dataclass(cls: Any = None, *, frozen: bool = False, eq: bool = True) -> Any:
        """Give a class the methods of its fields, but for those that are written in it."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq)
        found = {
            each.name: each for base in cls.__mro__[:0:-1] for each in vars(base).get(FIELDS, ())
        }
        for name, annotation in vars(cls).get("__annotations__", {}).items():
            if not annotation.startswith("ClassVar["):
                found[name] = _declared(cls, name, annotation)
        methods = {
            **(FROZEN if frozen else {}),
            **(EQUAL if eq else {}),
            "__init__": _init,
            "__repr__": _repr,
        }
        if eq and not frozen:
            methods["__hash__"] = None
        for name in methods.keys() - vars(cls).keys():
            setattr(cls, name, methods[name])
        setattr(cls, FIELDS, tuple(found.values()))
        return cls

    def _declared(cls: Any, name: str, annotation: str) -> Field:
        """A field as the body of its class has it; what stays there is its default, if there is
        one.
        """
        declared = vars(cls).get(name, MISSING)
        if not isinstance(declared, Field):
            declared = field(default=declared)
        elif declared.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, declared.default)
        declared.name, declared.type = name, annotation
        return declared

    def fields(record: Any) -> tuple[Field, ...]:
        """The fields of a record or of its class, in order."""
        return record.__record_fields__

    def replace(record: Any, **changes: Any) -> Any:
        """The record with other values in some of its fields."""
        return type(record)(
            **{**{each.name: getattr(record, each.name) for each in fields(record)}, **changes}
        )

    def asdict(record: Any) -> Any:
        """The values of a record by name, and in the same way those of the records in them."""
        return {each.name: _plain(getattr(record, each.name)) for each in fields(record)}

    def _plain(value: Any) -> Any:
        if hasattr(value, FIELDS):
            return asdict(value)
        if isinstance(value, dict):
            return type(value)((_plain(key), _plain(each)) for key, each in value.items())
        if isinstance(value, (list, tuple)):
            plain = map(_plain, value)
            return type(value)(*plain) if hasattr(value, "_fields") else type(value)(plain)
        return value

    def _init(self: Any, /, *values: Any, **named: Any) -> None:
        known = fields(self)
        own = {each.name: value for each, value in zip(known, values)}
        for each in known[len(values) :]:
            if each.name in named:
                own[each.name] = named.pop(each.name)
            elif each.default is not MISSING:
                own[each.name] = each.default
            elif each.default_factory is not MISSING:
                own[each.name] = each.default_factory()
            else:
                raise TypeError(f"{type(self).__name__}() misses {each.name}")
        if named or len(values) > len(known):
            raise TypeError(f"{type(self).__name__}() takes each of {', '.join(own)} once")
        vars(self).update(own)
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    def _repr(self: Any) -> str:
        shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self))
        return f"{type(self).__qualname__}({shown})"

    def _compared(self: Any) -> tuple[Any, ...]:
        return tuple(getattr(self, each.name) for each in fields(self) if each.compare)

    def _eq(self: Any, other: Any) -> Any:
        return _compared(self) == _compared(other) if type(other) is type(self) else NotImplemented

    def _hash(self: Any) -> int:
        return hash(_compared(self))

    def _refuse(self: Any, name: str, value: Any = None) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set: the record is frozen")

    EQUAL = {"__eq__": _eq, "__hash__": _hash}
    FROZEN = {"__setattr__": _refuse, "__delattr__": _refuse}
