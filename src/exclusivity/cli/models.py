"""Model files of the command line, and the rows of a data file that a model takes."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np

from exclusivity._errors import hint_at_name
from exclusivity._text import printable
from exclusivity.cli.data import Source, counted, decimal_of, note
from exclusivity.cli.files import FileError, UsageError, file_errors
from exclusivity.io._cells import ColumnRule
from exclusivity.io._reading import listed


class Rows(NamedTuple):
    """Rows that a model takes, their labels, and columns to hand on."""

    X: Any
    y: Any = None
    kept: Any = None


class Loaded:
    """A classifier or a Pipeline that ends with one, from a file.

    Attributes
    ----------
    model, classifier : estimator
        All of it, and its last step.
    title : str
        The file.
    names, n_features : list of str or None, int
        The names of its columns, and the width of its rows.
    columns : list or None
        The columns of a table as they were learned; None for a model of plain numbers.
    target : str, int or None
        The column that held its classes, where the file knows it.
    is_robust : bool
        Whether it is a robust additive model.
    """

    def __init__(self, model: Any, title: str) -> None:
        steps = steps_of(model)
        first, self.classifier = steps[0], steps[-1]
        self.model, self.title, self.is_robust = model, title, is_robust(self.classifier)
        names = getattr(first, "feature_names_in_", None)
        self.names = None if names is None else [str(name) for name in names]
        self.n_features = int(first.n_features_in_)
        self.columns: list[Any] | None = getattr(first, "columns_", None)
        self.target: str | int | None = getattr(model, "target_column_", None)

    def predict(self, X: Any) -> Any:
        """Predict some rows at a time."""
        return self.ask(X, self.model.predict)

    def ask(self, X: Any, question: Any) -> Any:
        """Ask the model about some rows at a time."""
        from exclusivity.inspection.summary import by_batches

        return by_batches(self.model, X, question)

    def rows(
        self,
        path: str,
        args: argparse.Namespace,
        *,
        wants_labels: bool | None,
        keep: list[str] | None = None,
    ) -> Rows:
        """Return rows for the model; labels are needed, not needed or welcome (None)."""
        source = Source(path, args)
        columns, names, is_table = source.columns, source.names, self.columns is not None
        if is_table and source.format.is_sparse:
            raise FileError(
                f"{source.title} is read as {source.format.name}, and {self.title} was fitted to a table; "
                "use CSV, TSV or Parquet with the same columns (--format, where a file's name misleads)."
            )
        if not is_table and args.decimal == "comma":
            raise UsageError(
                f"--decimal comma is for tables, and {self.title} was fitted to plain numbers; write "
                "decimals with a point."
            )
        if keep and columns != [] and not names:
            raise UsageError(f"--keep is for columns with names, and {source.title} has none.")
        target, ignore = source.chosen(args)
        if columns is None:
            content = self._libsvm(source)
            return Rows(
                content.data, None if wants_labels is False else self._checked(content.target, source.title)
            )
        kept = [source.column(text) for text in keep or ()]
        rules = self._rules(strict=args.strict)
        if names and self.names is not None:
            self._match_features(source, {target, *ignore}, lenient=is_table and not args.strict)
            left = [name for name in names if name not in {*self.names, *ignore, *kept, target}]
            if target is None and wants_labels is not False:
                target = self._held_target(source, left, needed=wants_labels)
            if left := [name for name in left if name != target]:
                note(f"ignoring {listed(left)} of {source.title}: no features of the model")
            rules = {name: rule for name, rule in rules.items() if name in names}
        elif columns:
            target = self._match_count(source, target, ignore, needs_labels=bool(wants_labels))
        if wants_labels is False:  # whatever stands there, missing values too
            target, ignore = None, ignore if target is None else [*ignore, target]
        texts = {name: ColumnRule("category") for name in kept if name not in rules}
        content = source.read(
            target=target,
            ignore=[name for name in ignore if name not in kept],
            rules={**rules, **texts},
            decimal=decimal_of(args, source) if is_table else "",
        )
        X = self._as_trained(content, source) if is_table else content.data
        X = X.drop(columns=list(texts), errors="ignore") if kept else X
        return Rows(X, self._checked(content.target, source.title), content.data[kept] if kept else None)

    def _rules(self, *, strict: bool) -> dict[str | int, Any]:
        """Return how to read its columns; unless ``strict``, texts among numbers or dates are missing."""
        names: list[Any] = list(self.names or range(self.n_features))
        if self.columns is None:
            return dict.fromkeys(names, ColumnRule("number", ".", required=True))
        rules = {}
        for name, column in zip(names, self.columns, strict=True):
            notation = getattr(column, "notation", None) or ""
            lenient = "" if strict or column.kind == "category" or "?" in notation else "?"
            rules[name] = ColumnRule(column.kind, notation + lenient)
        return rules

    def _checked(self, y: Any, title: str) -> Any:
        """Return labels if one of them is a class of the model; report rows with others."""
        if y is None:
            return None
        classes: Any = self.classifier.classes_
        same_kind = (y.dtype.kind in "biuf") == (classes.dtype.kind in "biuf")
        is_known = np.isin(y, classes) if same_kind else np.zeros(len(y), dtype=bool)
        if not is_known.any():
            found, known = (", ".join(map(printable, each[:5])) for each in (np.unique(y), classes))
            raise FileError(
                f"the labels of {title} ({found}) are none of the classes of {self.title} ({known}); choose "
                "the column of the classes with --target, or use data with these classes."
            )
        if not is_known.all():
            rows, example = counted(int((~is_known).sum()), "row"), printable(y[~is_known][0])
            note(
                f"{rows} of {title} with a class unknown to {self.title}, such as {example}, cannot be right"
            )
        return y

    def _libsvm(self, source: Source) -> Any:
        """Return a LIBSVM file, whose features that are not there are zero, and missing in a wrong file."""
        content = source.read(n_features=self.n_features)
        largest = int(content.data.indices.max(initial=-1)) + 1
        if largest < self.n_features:
            note(
                f"warning: the largest index in {source.title} is {largest}, and {self.title} has "
                f"{self.n_features} features; those that are not there are read as 0"
            )
        return content

    def _match_count(self, source: Source, target: Any, ignore: list[Any], *, needs_labels: bool) -> Any:
        """Return the target where data or model have no names; the number of columns must fit."""
        count = len(source.columns or ())
        if target is None and isinstance(self.target, int) and count - len(ignore) == self.n_features + 1:
            target = self.target
        if needs_labels and target is None:
            raise source.which_target(source.names)
        left = count - len(ignore) - (target is not None)
        if left != self.n_features:
            raise FileError(
                f"{source.title} has {left} columns besides those chosen with --target and --ignore, but "
                f"{self.title} was fitted to {self.n_features} features, without names; say with --target "
                "and --ignore which columns are no features."
            )
        return target

    def _match_features(self, source: Source, chosen: set[Any], *, lenient: bool) -> None:
        """Refuse or report columns of the model that are absent; refuse those that are target or ignored."""
        known, columns = self.names or [], source.names
        if absent := [name for name in known if name not in columns]:
            hint = hint_at_name(absent[0], columns)
            if not lenient or len(absent) == len(known):
                other_model = ", or fit with --max-broken or --additive" if self.columns is None else ""
                raise FileError(
                    f"{source.title} lacks {listed(absent)}, which {self.title} was fitted to; {hint} Use "
                    f"data with the same columns{other_model}."
                )
            cells = "all its cells" if len(absent) == 1 else "all their cells"
            hint = f" {hint}" * hint.startswith("did")
            note(f"{source.title} lacks {listed(absent)}; {cells} count as missing values.{hint}")
        if used := [name for name in known if name in chosen]:
            raise FileError(
                f"{listed(used)} is a feature of {self.title}: it can be neither target nor ignored."
            )

    def _held_target(self, source: Source, left: list[str], *, needed: bool | None) -> Any:
        """Return the column of the classes, among those that are no features."""
        named = [name for name in left if name]  # a nameless one holds the numbers of the rows
        if self.target in left or (self.target is None and len(named) == 1):
            return self.target or named[0]
        if not needed:
            return None
        if not isinstance(self.target, str):
            raise source.which_target(named)
        other = f"; say --target if it is {listed(named)}" if named else ""
        raise FileError(
            f"{source.title} has no column {self.target!r}, which held the classes of {self.title}{other}; "
            "use data with classes ('erm predict' needs none)."
        )

    def _as_trained(self, content: Any, source: Source) -> Any:
        """Return the columns of the model; report cells that it cannot take, which are missing values."""
        names: list[Any] = list(self.names or content.data.columns)
        table = content.data.reindex(columns=names)
        for name, column in zip(names, self.columns or (), strict=True):
            if column.kind == "category":
                _report_new_levels(column, name, table[name], source)
            if n_lost := content.n_lost.get(name):
                trained = ", as in training (--numeric)" * ("?" in (column.notation or ""))
                lost = f"{counted(n_lost, 'text')} taken for missing values{trained}"
                note(f"column {name!r} of {source.title}: {lost}")
        return table


def _report_new_levels(column: Any, name: object, cells: Any, source: Source) -> None:
    """Report rows with levels that the training rows did not have: they count as none."""
    from exclusivity.tables._columns import as_levels, column_of

    code = getattr(column, "code", column)  # of an encoder; a robust model has levels itself
    known = {*getattr(code, "levels", getattr(code, "categories", ())), *getattr(code, "rare", ())}
    if not known or (code is not column and column.n_levels > len(known)):
        return  # the rarest of very many are not kept
    codes, levels = as_levels(column_of(cells.to_frame(), 0))
    if new := [place for place, level in enumerate(levels) if level not in known]:
        rows = counted(int(np.isin(codes, new).sum()), "row")
        note(
            f"column {name!r} of {source.title}: {rows} with {counted(len(new), 'level')} that training did "
            f"not have, such as {levels[new[0]]!r}; they count as no level"
        )


def is_robust(classifier: Any) -> bool:
    """Return whether a classifier is a robust additive model."""
    return hasattr(classifier, "max_broken")


def steps_of(model: object) -> list[Any]:
    """Return the steps of a pipeline that can have names, or the model itself."""
    return [step for _, step in model.steps if hasattr(step, "fit")] if hasattr(model, "steps") else [model]


def load(path: str) -> Loaded:
    """Read a model file."""
    from exclusivity.io import ModelFormatError, load_model

    try:
        with file_errors(path):
            return Loaded(load_model(path), path)
    except ModelFormatError as error:
        raise FileError(f"{error} (MODEL is the file that 'erm fit -o' wrote.)") from error


def save(model: Any, names: list[str] | None, target: str | int | None, path: str) -> None:
    """Write a model file that knows the names of the features and the column of the classes."""
    from exclusivity.io import save_model

    if names is not None:
        # Only the first step sees the names: what it hands on is a plain array.
        steps_of(model)[0].feature_names_in_ = np.array(names, dtype=object)
    if target is not None:
        model.target_column_ = target
    with file_errors(path):
        save_model(model, path)
