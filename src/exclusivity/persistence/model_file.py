"""save_model and load_model."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from exclusivity import __version__
from exclusivity.persistence.container import ArrayStore, Stream, read_container, write_container
from exclusivity.persistence.errors import ModelFormatError
from exclusivity.persistence.files import whole_file
from exclusivity.persistence.kinds import pack_model, unpack_model

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def save_model(model: BaseEstimator, path: str | os.PathLike[str]) -> None:
    """Save a fitted model to a file that holds data only, no code.

    The file is written as a whole or not at all: an existing one stays intact until the new one is complete.

    Parameters
    ----------
    model : ERMClassifier, ERMClassifierCV or Pipeline
        A fitted classifier, or a pipeline of ``TableEncoder``, ``InteractionFeatures``, ``StandardScaler``,
        ``MinMaxScaler``, ``MaxAbsScaler`` or ``RobustScaler`` steps and such a classifier. Where it has an
        attribute ``target_column_`` (the name, or the number from 0, of the column that held its classes),
        that is stored too; ``erm fit`` sets it.
    path : path
        Where to; usually ``*.erm``.

    Raises
    ------
    TypeError, ValueError
        Where the model, a parameter (a function, for example) or a label cannot be stored; then
        nothing is written.
    OSError
        Where the file cannot be written.

    See Also
    --------
    load_model : The way back.

    Examples
    --------
    >>> import tempfile
    >>> from exclusivity import ERMClassifier
    >>> from exclusivity.persistence import load_model, save_model
    >>> model = ERMClassifier(3).fit([[0.0], [1.0]], ["low", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, Path(folder) / "level.erm")
    ...     load_model(Path(folder) / "level.erm").predict([[0.2], [0.8]])
    array(['low', 'high'], dtype='<U4')
    """
    store = ArrayStore()
    packed = pack_model(model, store)
    with whole_file(Path(path)) as stream:
        write_container(packed, store, __version__, stream.write)


def load_model(path: str | os.PathLike[str]) -> BaseEstimator:
    """Load a model that ``save_model`` wrote. Safe with files of strangers: nothing in a file is executed.

    The model is as good as the saved one: it predicts bit by bit the same, can be cloned and fitted again.
    Loading takes at most twice the memory of the file, and 16 MiB.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    model : ERMClassifier, ERMClassifierCV or Pipeline
        What was saved.

    Raises
    ------
    ModelFormatError
        Where the file is not a model file, is damaged, or comes from a newer version.
    OSError
        Where the file cannot be read.

    See Also
    --------
    save_model : Writes the file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from exclusivity.persistence import ModelFormatError, load_model
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "not_a_model.erm"
    ...     _ = file.write_bytes(b"something else")
    ...     try:
    ...         load_model(file)
    ...     except ModelFormatError as error:
    ...         print(error.cause[:21])
    this is no model file
    """
    path = Path(path)
    if stat.S_ISDIR(path.stat().st_mode):
        raise IsADirectoryError(f"{path} is a folder; give the name of a model file.")
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait, perhaps for ever
        raise ModelFormatError("this is no ordinary file; expected a model file.", str(path))
    with path.open("rb", buffering=0) as stream:
        try:
            return read_model(stream, os.fstat(stream.fileno()).st_size)
        except ModelFormatError as error:
            raise ModelFormatError(error.cause, str(path)) from error.__cause__


def read_model(stream: Stream, size: int) -> BaseEstimator:
    """Load a model from an open binary file, as :func:`load_model` does from a path.

    Parameters
    ----------
    stream : binary file
        Open for reading, at the first byte of the model.
    size : int
        Number of bytes that the model takes: all that is there, to the last byte.

    Returns
    -------
    model : ERMClassifier, ERMClassifierCV or Pipeline

    Raises
    ------
    ModelFormatError
        As :func:`load_model` does.

    Examples
    --------
    >>> from io import BytesIO
    >>> from exclusivity.persistence import ModelFormatError, read_model
    >>> try:
    ...     read_model(BytesIO(b""), size=0)
    ... except ModelFormatError as error:
    ...     print(error.cause)
    the file is empty; expected a model written by save_model.
    """
    packed, table = read_container(stream, size)
    return unpack_model(packed, table)
