"""Assemble the extension's files for a server, and the tables of arguments of its reference.

The files are scripts, the control file, and the pages that help() reads, as one file.
`make install` and setup.py both call this module, so that both install the same files.
`make reference` calls it to write signatures and tables of arguments into the pages, and
`make dist` to write an archive for PGXN. The module needs the standard library only.
"""

from __future__ import annotations

import json
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

ROOT = Path(__file__).resolve().parent
NAME = "cerebro_db"
CONTROL = f"{NAME}.control"
REFERENCE = ROOT / "docs" / "reference" / "sql"
PAGES = (
    "README.md",
    "train.md",
    "models.md",
    "madlib.md",
    "searches.md",
    "runs.md",
    "administration.md",
)
"""The pages of the reference in the order of their contents; the first one lists all others."""
INSTALLED_PAGE = "sql-reference.md"
"""All pages in one file, which lies beside the backend."""
CHANGELOG = "CHANGELOG.md"
META = "META.json"
ARCHIVED = (
    ".ci",
    CHANGELOG,
    "LICENSE",
    "MANIFEST.in",
    META,
    "Makefile",
    "README.md",
    "SECURITY.md",
    "assembly.py",
    NAME,
    CONTROL,
    "docs",
    "migrations",
    "plpy",
    "pyproject.toml",
    "setup.py",
    "sql",
)
"""Files and folders of an archive for PGXN: all that `make install` and pip need, and the pages."""
WIDTH = 100
LINE = 125
LEAST_LENT = 4
"""A table lists arguments of another function if they are fewer."""
FUNCTION_START = re.compile(r"^(?=CREATE OR REPLACE (?:FUNCTION|PROCEDURE) )", re.MULTILINE)
CREATED = re.compile(r"CREATE OR REPLACE (?:FUNCTION|PROCEDURE) (?P<name>[\w.@]+)\(")
SAME_ARGUMENTS = re.compile(r"@arguments of (?P<name>[\w.]+)@")
ALIAS = re.compile(r"^-- Alias: (\w+)\n", re.MULTILINE)
OTHER_HELP = re.compile(r"^-- Arguments without a comment are those of (.+)\.\n", re.MULTILINE)
COMMENT = re.compile(r"^[ ]*--[^\n]*\n", re.MULTILINE)
COMMENT_OR_BRACKET = re.compile(r"--[^\n]*|[()]")
ARGUMENT = re.compile(r"\s*(?P<help>(?:--[^\n]*\n\s*)*)(?P<declared>(?:[^,()]|\([^)]*\))+)(?:,|\Z)")
RETURNS = re.compile(r"\)\s*RETURNS (?P<type>.*?)\s*LANGUAGE ", re.DOTALL)
SECTION_START = re.compile(r"^(?=### [a-z_0-9.]+(?:, [a-z_0-9.]+)*\n)", re.MULTILINE)
SECTION = re.compile(r"^### (?P<names>[a-z_0-9.]+(?:, [a-z_0-9.]+)*)\n", re.MULTILINE)
SIGNATURE = re.compile(r"(?P<begin>\A.*\n\n)(?:(?:    .*\n)+\n)?")
ARGUMENTS = re.compile(
    r"(?P<begin><!-- arguments -->\n)(?:(?:The a|A)rguments .*\n(?:[^|\n].*\n)*)?"
    r"(?:\n?\| argument \|.*\n(?:\|.*\n)*)?"
)
CONTENTS = re.compile(r"(?P<begin><!-- contents -->\n)(?:.+\n)*")
LINK_TO_SECTION = re.compile(r"\]\(#(?P<key>[^)]+)\)")
"""A link in the help of an argument: to a heading by its anchor, or to a function by its name."""
CHAPTER_START = re.compile(r"^## (?=[A-Z])", re.MULTILINE)
HEAD = '\\echo Use "%s" to load this file. \\quit\n'


class Argument(NamedTuple):
    """An argument of an SQL function."""

    name: str
    type: str
    default: str | None  # an SQL expression; None if the argument is required
    help: str  # Markdown
    lender: str | None = None  # the function whose argument has the same type, default and help


class Declaration(NamedTuple):
    """One form of an SQL function, as a file of sql/ declares it."""

    name: str
    arguments: tuple[Argument, ...]
    returns: str  # such as "bigint" or "TABLE (id text)"
    alias: str | None
    same_as: str | None  # the function that lends its arguments

    @property
    def signature(self) -> str:
        """Return a call with the names of all arguments, optional ones in brackets.

        A function that has the arguments of another one shows required ones alone.
        """
        required = [argument.name for argument in self.arguments if argument.default is None]
        optional = [argument.name for argument in self.arguments if argument.default is not None]
        if self.same_as:
            optional = ["…"]
        call = f"{self.public_name}({', '.join(required)} [, {', '.join(optional)}])"
        call = call.replace("( [, ", "([").replace(" [, ]", "").replace("([]", "(")
        if self.returns == "void":
            return call
        return f"{call} RETURNS {self.returns}"

    @property
    def public_name(self) -> str:
        """Return the short name of a function that has two."""
        return self.alias or self.name


def version() -> str:
    """Return the version, which only the control file states."""
    line = re.search(r"^default_version\s*=\s*'(.+)'", (ROOT / CONTROL).read_text(), re.MULTILINE)
    if line is None:
        sys.exit(f"{CONTROL} has no default_version")
    return line.group(1)


def package_version() -> str:
    """Return the version of the Python package: a development one until the changelog has a date.

    The extension has no such suffix: its scripts are named by the release that they lead to.
    """
    heading = f"## [Unreleased] {version()}\n"
    if heading in (ROOT / CHANGELOG).read_text():
        return f"{version()}.dev0"
    return version()


def scripts() -> dict[str, str]:
    """Return the scripts of CREATE EXTENSION and ALTER EXTENSION … UPDATE by file name.

    An upgrade goes from any older version straight to this one: the table changes since then in
    order, then every function again. So no function is ever created against the tables of a
    version in between.
    """
    files = expanded_files()
    tables = "".join(text for path, text in files.items() if path.name < "2")
    functions = "".join(text for path, text in files.items() if path.name >= "2")
    result = {f"{NAME}--{version()}.sql": HEAD % f"CREATE EXTENSION {NAME}" + tables + functions}
    migrations = sorted((ROOT / "migrations").glob("*--*.sql"), key=_old_version)
    for number, migration in enumerate(migrations):
        changes = "".join(path.read_text() for path in migrations[number:])
        name = f"{NAME}--{migration.name.partition('--')[0]}--{version()}.sql"
        result[name] = HEAD % f"ALTER EXTENSION {NAME} UPDATE" + changes + functions
    return result


def expanded_files() -> dict[Path, str]:
    """Return the files of sql/ in their order, each with the SQL that a server gets."""
    result = {}
    preceding = ""
    for path, text in _sql_files().items():
        result[path] = expand(text, preceding)
        preceding += text
    return result


def expand(text: str, preceding: str = "") -> str:
    """Return SQL with what a file of sql/ leaves to this function.

    * `@arguments of name@` becomes the arguments of a function further up.
    * The help of arguments, which is comments before them, is removed, and so is the line
      `-- Arguments without a comment are those of name.`
    * `COMMENT ON FUNCTION name IS` gets the types of the arguments of the function before it, so
      that functions of other extensions with the same name are left alone.
    * `-- Alias: name` behind a function and its comment creates both once more under this name.

    Args:
        preceding: the text of the files before this one.
    """
    text = SAME_ARGUMENTS.sub(lambda match: _arguments(preceding + text, match["name"]), text)
    text = OTHER_HELP.sub("", text)
    parts = FUNCTION_START.split(text)
    return parts[0] + "".join(_expand_function(part) for part in parts[1:])


def _arguments(text: str, name: str) -> str:
    """Return the arguments of a function or procedure as they are written."""
    created = re.search(rf"(?:FUNCTION|PROCEDURE) {re.escape(name)}\(", text)
    if created is None:
        raise ValueError(f"{name} is not created further up")
    depth = 1
    for match in COMMENT_OR_BRACKET.finditer(text, created.end()):
        depth += (match[0] == "(") - (match[0] == ")")
        if not depth:
            return text[created.end() : match.start()]
    raise ValueError(f"the arguments of {name} do not end")


def _expand_function(text: str) -> str:
    """Return text that begins with a function, with the types in its comment, and its aliases."""
    created = CREATED.match(text)
    assert created, text[:100]
    name = created["name"]
    arguments = _arguments(text, name)
    text = text.replace(arguments, COMMENT.sub("", arguments), 1) if "--" in arguments else text
    types = ", ".join(argument_types(arguments))
    comment = re.compile(rf"(COMMENT ON \w+ {re.escape(name)}) IS")
    definition, *aliases = ALIAS.split(comment.sub(rf"\1({types}) IS", text))
    for number in range(0, len(aliases), 2):
        alias, following = aliases[number : number + 2]
        definition += "\n" + definition.replace(name, alias) + following
    return definition


def argument_types(arguments: str) -> list[str]:
    """Return the types of the arguments of a function, as it is declared.

    >>> argument_types("a integer, b numeric(9, 2) DEFAULT 1, OUT c text")
    ['integer', 'numeric(9, 2)']
    """
    return [argument.type for argument in parse_arguments(arguments)]


def parse_arguments(text: str) -> list[Argument]:
    """Return the input arguments of a function, with the comments before them as help.

    >>> parse_arguments("-- The run.\\n run_id bigint, wait interval DEFAULT NULL, OUT c text")[0]
    Argument(name='run_id', type='bigint', default=None, help='The run.')
    """
    result = []
    for match in ARGUMENT.finditer(text):
        declared = " ".join(match["declared"].split())
        declared, _, default = declared.partition(" DEFAULT ")
        name, _, type_ = declared.partition(" ")
        if name and name != "OUT":
            lines = [line.strip(" -") for line in match["help"].splitlines()]
            result.append(Argument(name, type_, default or None, " ".join(lines).strip()))
    return result


def declarations() -> list[Declaration]:
    """Return the functions of sql/ in their order, one entry for each form.

    An argument without a comment has the help of the argument of this name in an earlier form of
    the function, or else in the functions that the declaration names.
    """
    sql = "".join(_sql_files().values())
    result: list[Declaration] = []
    known: dict[str, dict[str, Argument]] = {}
    for part in FUNCTION_START.split(sql)[1:]:
        declaration = _parse_declaration(part, sql)
        lent: dict[str, Argument] = {}
        for source in _list_help_sources(declaration, part):
            for name, argument in known[source].items():
                lent.setdefault(name, argument._replace(lender=argument.lender or source))
        own = known.setdefault(declaration.name, {})
        arguments = []
        for argument in declaration.arguments:
            if not argument.help:
                argument = _describe(argument, own.get(argument.name) or lent.get(argument.name))
            own[argument.name] = argument
            arguments.append(argument)
        result.append(declaration._replace(arguments=tuple(arguments)))
    return result


def _describe(argument: Argument, other: Argument | None) -> Argument:
    """Return an argument with the help of another one of its name, if there is one."""
    if other is None:
        return argument
    is_same = (argument.type, argument.default) == (other.type, other.default)
    return argument._replace(help=other.help, lender=other.lender if is_same else None)


def _list_help_sources(declaration: Declaration, part: str) -> list[str]:
    """Return the functions that describe arguments which a declaration does not describe."""
    if declaration.same_as:
        return [declaration.same_as]
    line = OTHER_HELP.search(part)
    return line[1].split(", ") if line else []


def _parse_declaration(part: str, sql: str) -> Declaration:
    """Return the function that a part of the SQL begins with.

    Args:
        sql: all SQL, which has the function that lends its arguments.
    """
    created = CREATED.match(part)
    assert created, part[:100]
    name = created["name"]
    arguments = _arguments(part, name)
    returns = RETURNS.match(part, created.end() + len(arguments))
    return_type = "void"
    if returns:
        return_type = re.sub(r"\(\s+", "(", " ".join(returns["type"].split()))
    lender = None
    if same := SAME_ARGUMENTS.search(arguments):
        lender = same["name"]
        arguments = _arguments(sql, lender)
    alias = ALIAS.search(part)
    return Declaration(
        name, tuple(parse_arguments(arguments)), return_type, alias[1] if alias else None, lender
    )


def read_reference() -> dict[str, str]:
    """Return the pages of the reference by file name."""
    return {name: (REFERENCE / name).read_text() for name in PAGES}


def reference(pages: Mapping[str, str]) -> dict[str, str]:
    """Return the pages of the reference with signatures and tables of arguments made from sql/.

    A signature stands below the heading of a section about one or several functions, the table
    behind `<!-- arguments -->`. Links to sections stand behind `<!-- contents -->`: on the first
    page those to all pages, on the others those of the page.
    """
    forms: dict[str, list[Declaration]] = {}
    for declaration in declarations():
        forms.setdefault(declaration.name, []).append(declaration)
    addresses = _list_addresses(pages)
    first_page = next(iter(pages))
    result = {}
    for name, page in pages.items():
        begin, *sections = SECTION_START.split(page)
        contents = _format_index(pages) if name == first_page else _format_contents(page)
        begin = CONTENTS.sub(rf"\g<begin>{contents}", begin)
        filled = [_fill_section(section, forms, addresses, name) for section in sections]
        result[name] = begin + "".join(filled)
    return result


def _list_addresses(pages: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the page and the anchor of each heading, by anchor and by the function's name."""
    addresses: dict[str, tuple[str, str]] = {}
    for name, page in pages.items():
        for heading in re.findall(r"^##+ (.+)$", page, re.MULTILINE):
            for key in (_slug(heading), *heading.split(", ")):
                addresses.setdefault(key, (name, _slug(heading)))
    return addresses


def _format_index(pages: Mapping[str, str]) -> str:
    """Return a table of the pages behind the first one, with links to their sections."""
    rows = ["| page | sections |", "|---|---|"]
    for name, page in [*pages.items()][1:]:
        title = page.partition("\n")[0].removeprefix("# ")
        rows.append(f"| [{title}]({name}) | {_format_links(page, name)} |")
    return "".join(f"{row}\n" for row in rows)


def _format_contents(page: str) -> str:
    """Return links to the sections of a page, in a table if the page has chapters."""
    chapters = CHAPTER_START.split(page)[1:]
    if not chapters:
        return _wrap_text(_format_links(page))
    rows = ["| chapter | sections |", "|---|---|"]
    for chapter in chapters:
        title = chapter.partition("\n")[0]
        rows.append(f"| [{title}](#{_slug(title)}) | {_format_links(chapter)} |")
    return "".join(f"{row}\n" for row in rows)


def _wrap_text(text: str) -> str:
    return "\n".join(wrap(text, LINE, break_long_words=False, break_on_hyphens=False)) + "\n"


def _format_links(text: str, page: str = "") -> str:
    """Return links to the sections of a text; a function that has two names is shown with one."""
    return ", ".join(
        f"[{re.sub(r', madlib_keras_[a-z_]+', '', heading)}]({page}#{_slug(heading)})"
        for heading in re.findall(r"^### (.+)$", text, re.MULTILINE)
    )


def _slug(heading: str) -> str:
    """Return the anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _fill_section(
    section: str,
    forms: dict[str, list[Declaration]],
    addresses: dict[str, tuple[str, str]],
    page: str,
) -> str:
    """Return the section of one or several functions with its signatures and tables."""
    heading = SECTION.match(section)
    assert heading
    functions = [forms[name] for name in heading["names"].split(", ") if name in forms]

    def write_address(link: re.Match[str]) -> str:
        other, anchor = addresses[link["key"]]
        return f"]({'' if other == page else other}#{anchor})"

    arguments = LINK_TO_SECTION.sub(write_address, _format_arguments(functions))
    sentence, blank, table = arguments.partition("\n\n")
    if blank:
        arguments = f"{_wrap_text(sentence)}\n{table}"
    calls = _format_signatures(functions) + "\n"
    section = SIGNATURE.sub(lambda block: block["begin"] + calls, section)
    return ARGUMENTS.sub(lambda block: block["begin"] + arguments, section)


def _format_signatures(functions: list[list[Declaration]]) -> str:
    """Return the calls of the functions, indented; forms with the same names are shown once."""
    calls: dict[tuple[str, ...], str] = {}
    for forms in functions:
        for form in forms:
            names = (form.name, *(argument.name for argument in form.arguments))
            calls.setdefault(names, form.signature)
    return "".join(map(_wrap_call, calls.values()))


def _wrap_call(call: str) -> str:
    """Return the lines of a call; none ends with the bracket of optional arguments."""
    parts = [call]
    if len(call) > WIDTH - 4:
        parts = call.replace(" RETURNS ", "\nRETURNS ").split("\n")
    lines = []
    for part in parts:
        unbreakable = part.replace("[, ", "[,\0").replace("double precision", "double\0precision")
        lines += wrap(unbreakable, WIDTH - 8, break_long_words=False, break_on_hyphens=False)
    return "    " + "\n        ".join(lines).replace("\0", " ") + "\n"


def _format_arguments(functions: list[list[Declaration]]) -> str:
    """Return a table of the arguments of all functions, after a sentence about those left out.

    A function leaves out what it has in common with a function that another section describes,
    if that is much. An argument that not all functions have begins with their names.
    """
    names = {forms[0].name for forms in functions}
    rows: dict[str, dict[tuple[str, str | None], list[tuple[Declaration, Argument]]]] = {}
    lenders: dict[str, None] = {}
    for forms in functions:
        for form in forms:
            if form.same_as is not None:
                lenders[form.same_as] = None
                continue
            lent = _list_lent(form, names)
            lenders.update(dict.fromkeys(lent.values()))
            for argument in form.arguments:
                if argument.name not in lent:
                    variants = rows.setdefault(argument.name, {})
                    key = _find_variant(variants, form, argument)
                    variants.setdefault(key, []).append((form, argument))
    lines = ["| argument | type | default | meaning |", "|---|---|---|---|"]
    for variants in rows.values():
        lines += [_format_row(variant, len(functions)) for variant in variants.values()]
    table = "".join(f"{line}\n" for line in lines) if rows else ""
    if not lenders:
        return table
    links = " and ".join(f"[{name.replace('_keras', '')}](#{name})" for name in lenders)
    if not rows:
        return f"The arguments are those of {links}.\n"
    return f"Arguments that are not listed are those of {links}.\n\n{table}"


def _find_variant(
    variants: dict[tuple[str, str | None], list[tuple[Declaration, Argument]]],
    form: Declaration,
    argument: Argument,
) -> tuple[str, str | None]:
    """Return the key of the row of an argument: forms of a function share one if the help agrees.

    The default of the first form counts, because forms with an argument of another type have none.
    """
    for key, others in variants.items():
        if key[0] == argument.help and any(other.name == form.name for other, _ in others):
            return key
    return argument.help, argument.default


def _list_lent(form: Declaration, names: set[str]) -> dict[str, str]:
    """Return the lenders of the arguments that a table leaves out: four or more.

    Args:
        names: the functions of the section, which lend nothing to each other.
    """
    lent = {argument.name: argument.lender for argument in form.arguments}
    result = {name: lender for name, lender in lent.items() if lender and lender not in names}
    return result if len(result) >= LEAST_LENT else {}


def _format_row(variants: list[tuple[Declaration, Argument]], functions: int) -> str:
    """Return the row of an argument, which may have other types in other forms of its function.

    Args:
        variants: forms of functions that describe the argument alike.
        functions: number of functions of the section.
    """
    argument = variants[0][1]
    types = " or ".join(dict.fromkeys(other.type for _, other in variants))
    default = "required"
    if argument.default is not None:
        default = f"`{argument.default}`"
    owners = dict.fromkeys(form.public_name.removeprefix("cerebro.") for form, _ in variants)
    prefix = ""
    if len(owners) < functions:
        prefix = f"{', '.join(f'`{owner}`' for owner in owners)}: "
    meaning = prefix + argument.help.replace("|", "\\|")
    return f"| `{argument.name}` | {types} | {default} | {meaning} |"


def write_reference() -> None:
    """Write signatures, tables of arguments and contents into the pages of the reference."""
    for name, page in reference(read_reference()).items():
        (REFERENCE / name).write_text(page)


def write(folder: Path) -> None:
    """Write all files into a folder, and remove the scripts of another version from it."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob(f"{NAME}--*.sql"):
        stale.unlink()
    files = {**scripts(), CONTROL: (ROOT / CONTROL).read_text(), "VERSION": version() + "\n"}
    files[INSTALLED_PAGE] = "\n".join(read_reference().values())
    for name, content in files.items():
        (folder / name).write_text(content)


def write_archive(folder: Path) -> Path:
    """Write the archive for PGXN, which has the same bytes at every call; return its path.

    PGXN wants each file in a folder that is named like the archive.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{NAME}-{json.loads((ROOT / META).read_text())['version']}"
    path = folder / f"{name}.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for file in sorted(_archived_files()):
            entry = ZipInfo(f"{name}/{file.relative_to(ROOT).as_posix()}")
            entry.compress_type = ZIP_DEFLATED
            entry.external_attr = (file.stat().st_mode & 0o755 | stat.S_IFREG) << 16
            archive.writestr(entry, file.read_bytes())
    return path


def _archived_files() -> Iterator[Path]:
    for name in ARCHIVED:
        path = ROOT / name
        if path.is_file():
            yield path
        for file in path.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                yield file


def _sql_files() -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(ROOT.glob("sql/*.sql"))}


def _old_version(migration: Path) -> list[int]:
    """Return the older version in the name of a migration; it sorts 0.10.0 after 0.9.0."""
    return [int(part) for part in migration.name.partition("--")[0].split(".")]


if __name__ == "__main__":
    if sys.argv[1:] == ["reference"]:
        write_reference()
    elif sys.argv[1:2] == ["archive"]:
        write_archive(Path(sys.argv[2]))
    else:
        write(Path(sys.argv[1]))
