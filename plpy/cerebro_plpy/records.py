"""Data classes with the interface of the standard library's `dataclasses`, but without compilation.

`dataclasses` compiles six methods for each class at import. For a hundred classes, this takes a new
session longer than all their modules. Here, all classes share the same methods, which read the
fields of the class. They behave like those of the standard library for the supported arguments.
Type checkers see the originals.
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
        """A field of a record."""

        __slots__ = ("compare", "default", "default_factory", "metadata", "name", "type")

        def __init__(
            self, default: Any, default_factory: Any, compare: bool, metadata: dict[str, Any]
        ) -> None:
            self.default = default
            self.default_factory = default_factory
            self.compare = compare
            self.metadata = metadata

    def field(
        *,
        default: Any = MISSING,
        default_factory: Any = MISSING,
        compare: bool = True,
        metadata: Any = None,
    ) -> Field:
        """Return the properties of a field other than its name and type."""
        return Field(default, default_factory, compare, metadata or {})

    def dataclass(cls: Any = None, *, frozen: bool = False, eq: bool = True) -> Any:
        """Add the methods of a record to a class, except for those that its body defines."""
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, eq=eq)
        fields_by_name = {
            field.name: field for base in cls.__mro__[:0:-1] for field in vars(base).get(FIELDS, ())
        }
        for name, annotation in vars(cls).get("__annotations__", {}).items():
            if not annotation.startswith("ClassVar["):
                fields_by_name[name] = _declare_field(cls, name, annotation)
        methods = {"__init__": _init, "__repr__": _repr}
        if frozen:
            methods.update(FROZEN)
        if eq:
            methods.update(EQUAL)
        if eq and not frozen:
            methods["__hash__"] = None
        for name in methods.keys() - vars(cls).keys():
            setattr(cls, name, methods[name])
        setattr(cls, FIELDS, tuple(fields_by_name.values()))
        return cls

    def _declare_field(cls: Any, name: str, annotation: str) -> Field:
        """Return a field that the body of a class declares; only its default stays in the class."""
        declared = vars(cls).get(name, MISSING)
        if not isinstance(declared, Field):
            declared = field(default=declared)
        elif declared.default is MISSING:
            delattr(cls, name)
        else:
            setattr(cls, name, declared.default)
        declared.name = name
        declared.type = annotation
        return declared

    def fields(record: Any) -> tuple[Field, ...]:
        """Return the fields of a record or of its class, in order."""
        return record.__record_fields__

    def replace(record: Any, **changes: Any) -> Any:
        """Return the record with other values in some of its fields."""
        values = {field.name: getattr(record, field.name) for field in fields(record)}
        return type(record)(**{**values, **changes})

    def asdict(record: Any) -> Any:
        """Return the values of a record by name, with nested records converted likewise."""
        return {field.name: _plain(getattr(record, field.name)) for field in fields(record)}

    def _plain(value: Any) -> Any:
        if hasattr(value, FIELDS):
            return asdict(value)
        if isinstance(value, dict):
            return type(value)((_plain(key), _plain(item)) for key, item in value.items())
        if isinstance(value, (list, tuple)):
            plain = map(_plain, value)
            return type(value)(*plain) if hasattr(value, "_fields") else type(value)(plain)
        return value

    def _init(self: Any, /, *args: Any, **kwargs: Any) -> None:
        own_fields = fields(self)
        values = {field.name: value for field, value in zip(own_fields, args)}
        for field in own_fields[len(args) :]:
            if field.name in kwargs:
                values[field.name] = kwargs.pop(field.name)
            elif field.default is not MISSING:
                values[field.name] = field.default
            elif field.default_factory is not MISSING:
                values[field.name] = field.default_factory()
            else:
                raise TypeError(f"{type(self).__name__}() misses {field.name}")
        if kwargs or len(args) > len(own_fields):
            raise TypeError(f"{type(self).__name__}() takes each of {', '.join(values)} once")
        vars(self).update(values)
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    def _repr(self: Any) -> str:
        values = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self))
        return f"{type(self).__qualname__}({values})"

    def _comparison_key(self: Any) -> tuple[Any, ...]:
        return tuple(getattr(self, field.name) for field in fields(self) if field.compare)

    def _eq(self: Any, other: Any) -> Any:
        if type(other) is not type(self):
            return NotImplemented
        return _comparison_key(self) == _comparison_key(other)

    def _hash(self: Any) -> int:
        return hash(_comparison_key(self))

    def _refuse(self: Any, name: str, value: Any = None) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be set: the record is frozen")

    EQUAL = {"__eq__": _eq, "__hash__": _hash}
    FROZEN = {"__setattr__": _refuse, "__delattr__": _refuse}
